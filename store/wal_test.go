package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
)

// TestWALFollowsBadger: after every transaction the newest of Badger's
// write-ahead files is the one we synced, over many changes of file and a
// reopening. It fails if a later Badger names or orders its files differently.
func TestWALFollowsBadger(t *testing.T) {
	opts := testOptions(t)
	opts.noSync = false
	for range 2 {
		s := mustOpen(t, opts)
		first := s.wal.n
		for i := range 300 {
			if err := s.write([]op{{key: fmt.Appendf(nil, "z%d", i), val: make([]byte, 2000)}}, nil); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(opts.Dir, "db", "*.mem"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			newest := files[len(files)-1] // five digits each, sorted
			if got := s.wal.file.Name(); got != newest {
				t.Fatalf("synced %s, the newest is %s", got, newest)
			}
			a, errA := s.wal.file.Stat()
			b, errB := os.Stat(newest)
			if errA != nil || errB != nil || !os.SameFile(a, b) {
				t.Fatalf("not the same file: %v %v", errA, errB)
			}
		}
		if s.wal.n < first+5 {
			t.Fatalf("only %d files", s.wal.n-first+1)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoValueLog: nothing that is written goes to the value log.
func TestNoValueLog(t *testing.T) {
	opts := testOptions(t)
	opts.memTable = 0
	s := mustOpen(t, opts)
	defer s.Close()
	e := oneBlock()
	e.Raw = make([]byte, 3<<20) // larger than any block
	e.Created[0].Raw = make([]byte, 500_000)
	if err := s.Commit([]*chain.Effects{e}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Sync(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(opts.Dir, "db", "*.vlog"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range b[20:] { // behind its header
		if c != 0 {
			t.Fatalf("byte %d of the value log is %#x", 20+i, c)
		}
	}
	if err := s.db.View(func(txn *badger.Txn) error {
		_, err := txn.Get(appendRefKey(nil, keyOutput, e.Created[0].Ref))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
