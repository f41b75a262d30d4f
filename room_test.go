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
	st, err := store.Open(store.Options{Dir: dir, Magic: g.Magic, K: chain.Height(g.K), Memory: 64 << 20, Terms: terms})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	block := &chain.Effects{Link: chain.Link{Point: chain.Point{Slot: 1, Hash: chain.Hash{1}}, Era: chain.Conway}}
	disk = nil
	if err := (roomyStore{st, dir, noRoom}).Commit([]*chain.Effects{block}); !errors.As(err, &disk) || !st.Head().Point.IsOrigin() {
		t.Fatalf("got %v, the head is %v", err, st.Head().At())
	}
	if err := (roomyStore{st, dir, 64 << 20}).Commit([]*chain.Effects{block}); err != nil || st.Head() != block.Link {
		t.Errorf("with room: %v, the head is %v", err, st.Head().At())
	}
}
