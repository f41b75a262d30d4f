package ourotail

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// noRoom is a memory whose reserve no disk has.
const noRoom = 1 << 60

// TestNoRoomOnTheDiskIsNoticedBeforeWriting: below the reserve nothing is opened
// and nothing committed, the error says what to do, and with room it goes on.
func TestNoRoomOnTheDiskIsNoticedBeforeWriting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	g, err := ledger.Network("preview")
	if err != nil {
		t.Fatal(err)
	}
	var disk *DiskError
	if _, err := Open(t.Context(), Config{SocketPath: "x", Genesis: g, DataDir: dir, Memory: noRoom}); !errors.As(err, &disk) || disk.Want <= disk.Free || disk.Dir != dir {
		t.Fatalf("got %v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v was written, %v", files, err)
	}
	enough, scarce := newRoom(store.Options{Dir: dir, Memory: 64 << 20}), newRoom(store.Options{Dir: dir, Memory: noRoom})
	now := &enough
	st, err := store.Open(store.Options{Dir: dir, Magic: g.Magic, K: chain.Height(g.K), Memory: 64 << 20, Terms: ledger.Terms, Room: func() error { return now.check() }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	block := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: 1, Hash: chain.Hash{1}}, Era: chain.Conway}}
	now = &scarce
	for name, write := range map[string]func() error{
		"genesis":  func() error { return st.Genesis(nil) },
		"commit":   func() error { return st.Commit([]*chain.Effects{block}) },
		"gather":   func() error { return st.Gather([]*chain.Effects{block}) },
		"flush":    st.Flush,
		"rollback": func() error { return st.Rollback(t.Context(), chain.Point{}) },
		"indexes":  func() error { return st.BuildIndexes(t.Context(), nil) },
	} {
		disk = nil
		if err := write(); !errors.As(err, &disk) || !st.Head().Point.IsOrigin() || st.State().Seeded {
			t.Errorf("%s: got %v, the head is %v", name, err, st.Head().At())
		}
	}
	now = &enough
	if err := st.Commit([]*chain.Effects{block}); err != nil || st.Head() != block.Link {
		t.Errorf("with room: %v, the head is %v", err, st.Head().At())
	}
}
