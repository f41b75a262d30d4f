package immutabledb_test

import (
	"hash/crc32"
	"os"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
	"github.com/ourotail/ourotail/immutabledb"
)

func FuzzParseIndexes(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 56}, make([]byte, 56))
	f.Add([]byte{}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, primary, secondary []byte) {
		if p, err := immutabledb.ParsePrimary(primary); err == nil && p.Entries() < 0 {
			t.Error("fewer than no entries")
		}
		entries, _ := immutabledb.ParseSecondary(secondary)
		var again []byte
		for _, e := range entries {
			again = e.Append(again)
		}
		if string(again) != string(secondary[:len(again)]) {
			t.Error("entries do not append to what they were read from")
		}
	})
}

// Whatever three files are the last chunk, what is read of them are blocks that
// follow each other with the checksums that the index says, or an error.
func FuzzLastChunk(f *testing.F) {
	m := create(f, 8, forge.EraSpan{Era: chain.Byron, Epochs: 1}, forge.EraSpan{Era: chain.Conway})
	if m.chunk(7) != 0 {
		m.blocks = m.blocks[:m.firstOf(f, 1)]
	}
	var files [3][]byte
	for i, kind := range []string{"chunk", "secondary", "primary"} {
		b, err := os.ReadFile(m.file(0, kind))
		if err != nil {
			f.Fatal(err)
		}
		files[i] = b
	}
	f.Add(files[0], files[1], files[2], false)
	f.Add(files[0], files[1], files[2], true)
	f.Add(files[0][:len(files[0])-3], files[1][:len(files[1])-57], files[2][:len(files[2])-5], false)
	f.Fuzz(func(t *testing.T, chunk, secondary, primary []byte, sealed bool) {
		x := &made{dir: t.TempDir(), forge: m.forge}
		for kind, b := range map[string][]byte{"chunk": chunk, "secondary": secondary, "primary": primary} {
			if err := os.WriteFile(x.file(0, kind), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if sealed {
			if err := os.WriteFile(x.file(1, "chunk"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := immutabledb.Open(x.dir, x.options())
		if err != nil {
			return
		}
		g := read(t, folder, chain.Origin, chain.Point{})
		if g.err != nil && len(g.raw) == 0 {
			return
		}
		entries, _ := immutabledb.ParseSecondary(secondary)
		for i, raw := range g.raw {
			if crc32.ChecksumIEEE(raw) != entries[i].CRC {
				t.Errorf("block %d has another checksum", i)
			}
		}
	})
}

func FuzzReadHeader(f *testing.F) {
	m := create(f, 30)
	for i := range m.blocks {
		h, err := immutable.ReadHeader(m.blocks[i].Raw, m.forge.ByronEpochSlots())
		if err != nil {
			f.Fatal(err)
		}
		hash, parent, err := immutabledb.ReadHeader(m.blocks[i].Raw, h.Offset, h.Size)
		if err != nil || hash != h.Point.Hash || parent != h.Parent {
			f.Fatalf("%v: %v %v %v", m.blocks[i].At(), hash, parent, err)
		}
		if len(m.blocks[i].Raw) < 3000 {
			f.Add(m.blocks[i].Raw, uint16(h.Offset), uint16(h.Size))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, offset, size uint16) {
		_, parent, err := immutabledb.ReadHeader(raw, int(offset), int(size))
		if err == nil && int(offset)+int(size) > len(raw) {
			t.Errorf("a header beyond the block, parent %v", parent)
		}
	})
}
