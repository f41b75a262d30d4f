package immutable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// Any three files make a folder that opens to blocks which follow each other,
// or not at all.
func FuzzOpen(f *testing.F) {
	g, err := forge.New(forge.Options{Seed: 1, K: 1, EpochBlocks: 3, Eras: []forge.EraSpan{{Era: chain.Byron, Epochs: 2}, {Era: chain.Conway}}})
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	w, err := immutable.Create(dir, 10)
	if err != nil {
		f.Fatal(err)
	}
	for range 6 {
		b, err := g.Next()
		if err != nil {
			f.Fatal(err)
		}
		if err := w.Append(b.Raw); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	for _, n := range []string{"00000", "00001"} {
		var files [3][]byte
		for i, k := range []string{"chunk", "secondary", "primary"} {
			if files[i], err = os.ReadFile(filepath.Join(dir, n+"."+k)); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(files[0], files[1], files[2], false)
		f.Add(files[0][:len(files[0])/2], files[1], []byte(nil), true)
	}
	f.Fuzz(func(t *testing.T, chunk, secondary, primary []byte, crc bool) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"chunk": chunk, "secondary": secondary, "primary": primary} {
			if err := os.WriteFile(filepath.Join(dir, "00000."+name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		db, err := immutable.Open(dir, immutable.Options{CheckCRC: crc, ByronEpochSlots: 10})
		if err != nil {
			return
		}
		cur := db.Cursor()
		defer cur.Close()
		for i := range db.Len() {
			if _, err := cur.Block(i); err != nil {
				t.Fatalf("block %d of %d: %v", i, db.Len(), err)
			}
			db.Height(i)
			db.Find(db.Entry(i).Point)
		}
	})
}

func FuzzReadHeader(f *testing.F) {
	g, err := forge.New(forge.Options{Seed: 1, EpochBlocks: 1})
	if err != nil {
		f.Fatal(err)
	}
	for range 12 {
		b, err := g.Next()
		if err != nil {
			f.Fatal(err)
		}
		if len(b.Raw) < 4000 {
			f.Add(b.Raw)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := immutable.ReadHeader(b, 21600)
		if err == nil && (h.Offset <= 0 || h.Size <= 0 || h.Offset+h.Size > len(b)) {
			t.Errorf("header at %d of %d bytes in %d", h.Offset, h.Size, len(b))
		}
	})
}
