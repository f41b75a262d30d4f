package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func mustOpen(t *testing.T, dir string, places ...Place) *Files {
	t.Helper()
	f, err := Open(dir, slices.Values(places), 1000, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f *Files, parts ...[]byte) (places []Place) {
	t.Helper()
	b := f.Batch()
	for _, part := range parts {
		p, err := b.Add(part)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, p)
	}
	if err := b.Write(); err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		f.Keep(p)
	}
	return places
}

func read(t *testing.T, v *View, p Place, want []byte) {
	t.Helper()
	got, err := v.Read(p, []byte("before"))
	if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) {
		t.Fatalf("at %+v: %d bytes, %v, want %d", p, len(got)-6, err, len(want))
	}
}

// TestWhatIsKeptIsRead plays writing, dropping, removing and opening again against
// a map.
func TestWhatIsKeptIsRead(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	kept := map[Place][]byte{}
	places := func() (list []Place) {
		for p := range kept {
			list = append(list, p)
		}
		return list
	}
	f := mustOpen(t, dir)
	for step := range 400 {
		switch rnd.IntN(4) {
		case 0, 1:
			var parts [][]byte
			for range rnd.IntN(5) {
				b := make([]byte, rnd.IntN(600))
				for i := range b {
					b[i] = byte(rnd.Uint32())
				}
				parts = append(parts, b)
			}
			for i, p := range write(t, f, parts...) {
				if p.Size > 0 {
					kept[p] = parts[i]
				}
			}
		case 2:
			for p := range kept {
				f.Drop(p)
				delete(kept, p)
				if rnd.IntN(3) == 0 {
					break
				}
			}
			for _, n := range f.Unwanted() {
				if err := f.Remove(n); err != nil {
					t.Fatal(err)
				}
			}
		case 3:
			if step%3 > 0 {
				break
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			f = mustOpen(t, dir, places()...)
		}
		for p, want := range kept {
			read(t, f.View(), p, want)
		}
	}
	sizes, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(sizes) > len(kept)+20 {
		t.Fatalf("%d files for %d strings", len(sizes), len(kept))
	}
}

// TestAViewOutlivesItsFiles removes a file under a reader.
func TestAViewOutlivesItsFiles(t *testing.T) {
	f := mustOpen(t, t.TempDir())
	long := bytes.Repeat([]byte("a"), 1500)
	old := write(t, f, long)[0]
	write(t, f, []byte("next file"))
	v := f.View()
	f.Drop(old)
	if got := f.Unwanted(); !slices.Equal(got, []uint32{old.File}) {
		t.Fatalf("unwanted are %v, want %d", got, old.File)
	}
	if err := f.Remove(old.File); err != nil {
		t.Fatal(err)
	}
	read(t, v, old, long)
	if _, err := f.View().Read(old, nil); err == nil {
		t.Fatal("a removed file is still shown")
	}
}

// TestNothingIsWrittenOver opens files behind whose last wanted byte a kill left
// others: what comes goes into a new file.
func TestNothingIsWrittenOver(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	places := write(t, f, []byte("wanted"), []byte("left behind"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = mustOpen(t, dir, places[0])
	next := write(t, f, []byte("new"))[0]
	if next.File == places[0].File {
		t.Fatalf("it was written to %+v", next)
	}
	read(t, f.View(), places[1], []byte("left behind"))
}

// TestDamageIsNamed cuts, changes and removes files.
func TestDamageIsNamed(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 3) },
		"removed": os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("wanteD"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := mustOpen(t, dir)
			p := write(t, f, []byte("wanted"))[0]
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, Name(p.File))
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			f, err := Open(dir, slices.Values([]Place{p}), 1000, true)
			if err == nil {
				_, err = f.View().Read(p, nil)
			}
			var damaged *DamagedError
			if !errors.As(err, &damaged) || damaged.Path != path {
				t.Fatalf("%v, want one that names %s", err, path)
			}
		})
	}
}

func TestBatchCanBeCut(t *testing.T) {
	f := mustOpen(t, t.TempDir())
	b := f.Batch()
	first, _ := b.Add([]byte("first"))
	for range 5 {
		if _, err := b.Add(make([]byte, 700)); err != nil {
			t.Fatal(err)
		}
	}
	b.Cut(1)
	second, _ := b.Add([]byte("second"))
	if err := b.Write(); err != nil {
		t.Fatal(err)
	}
	if second.File != first.File || second.Offset != 5 {
		t.Fatalf("it is at %+v", second)
	}
	read(t, f.View(), first, []byte("first"))
	read(t, f.View(), second, []byte("second"))
}

func TestOnlyOurNamesAreNumbers(t *testing.T) {
	for _, name := range []string{"1.blocks", "000000.blocks", "0000001.blocks", "-00001.blocks", "000001.sst", "000001.blocks~", ".blocks"} {
		if n, ok := Number(name); ok {
			t.Errorf("%s is number %d", name, n)
		}
	}
	if n, ok := Number("1000000.blocks"); !ok || n != 1_000_000 {
		t.Errorf("%d %v", n, ok)
	}
}
