package model

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/trial"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

func (l *life) imageLocked(name string) {
	l.w.serial++
	to := filepath.Join(l.w.base, strconv.Itoa(l.w.serial))
	if err := copyTree(l.w.dir, to); err != nil {
		panic(err)
	}
	l.image, l.killed, l.atKill, l.lowest = to, name, l.durable, l.undoing
}

// moveTo goes on in another directory.
func (w *world) moveTo(dir string) {
	if err := os.RemoveAll(w.dir); err != nil {
		w.fail("%v", err)
	}
	w.dir = dir
}

// checkImage opens what a kill left and compares it with what was acknowledged.
func (w *world) checkImage(l *life) {
	w.t.Helper()
	head, err := w.headOf(w.dir)
	if err != nil {
		w.fail("after a kill at %q: %v", l.killed, err)
	}
	switch {
	case l.lowest == nil && !w.descends(head, l.atKill):
		w.fail("after a kill at %q the head is %v, %v was acknowledged", l.killed, head, l.atKill)
	case l.lowest != nil && (!w.descends(l.atKill, head) || !w.descends(head, *l.lowest)):
		w.fail("after a kill at %q the head is %v, on the way from %v to %v", l.killed, head, l.atKill, *l.lowest)
	}
}

// headOf opens a directory as OpenDir does, which it now and then is: with what
// memory OpenDir takes, most of the time would go into clearing it.
func (w *world) headOf(dir string) (chain.At, error) {
	if w.rnd.IntN(8) == 0 {
		d, err := ourotail.OpenDir(dir, nil)
		if err != nil {
			return chain.At{}, err
		}
		return originOr(d.State().Head), d.Close()
	}
	o := store.Options{Dir: dir, Existing: true, Memory: 64 << 20, Terms: ledger.Terms}
	s, err := store.Open(o.WithTrial(&trial.Trial{MemTable: w.memTable(), Unmerged: w.unmerged()}))
	if err != nil {
		return chain.At{}, err
	}
	return originOr(s.Head()), s.Close()
}

// memTable is the size of memtables: if tables are not to be written all the time,
// what is never filled, and is cleared at each opening, is not large either.
func (w *world) memTable() int64 {
	if w.tables > 0 || w.roomy {
		return w.tables
	}
	return 1 << 20
}

// unmerged tells whether the database may go without merging tables, which looks
// for work twenty times a second of virtual time: where it would find none, because
// there are fewer tables than it merges, and few are written.
func (w *world) unmerged() bool {
	if w.tables > 0 {
		return false
	}
	tables := 0
	if err := filepath.WalkDir(w.dir, func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".sst" {
			tables++
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}); err != nil {
		w.fail("%v", err)
	}
	return tables < 6
}

// copyTree copies a directory without the holes in its files.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		out := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(out, 0o700)
		}
		return copyFile(name, out)
	})
}

func copyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	const piece = 64 << 10
	var buf, zero [piece]byte
	size := int64(0)
	for {
		n, err := src.Read(buf[:])
		if n > 0 && !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := dst.WriteAt(buf[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return dst.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
