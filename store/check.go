package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// CheckOptions says what Check looks at.
type CheckOptions struct {
	Dir    string // the data directory
	Logger *slog.Logger

	// Terms is what the store was filled with; without it indexes are not checked.
	Terms func(o *chain.Output, emit func(chain.Source)) error

	// Output, if given, is called for every output that is kept, spent or not, in
	// ascending order of reference, and Block for every raw block with its link. An
	// error is a finding. What they are given is valid within the call.
	Output func(o *chain.Output, spent bool) error
	Block  func(l chain.Link, raw []byte) error

	// Progress, if given, is called now and then: what is being read, how much of it
	// has been, and how much there is; 0 if that is not known.
	Progress func(what string, done, total int64)
}

// Finding is one kind of thing that is wrong.
type Finding struct {
	Kind  string
	Count int64
	First string // the first of them, in words
}

// Checked is what Check found.
type Checked struct {
	Findings []Finding // none if all is well
	Notes    []string  // what is worth telling and not wrong

	// Read tells that the contents were read; they are not if the files are damaged.
	Read bool

	Tables     int
	TableBytes int64
	State      State // what the store says of itself; zero unless Read
	Links      int64 // blocks of our chain
	Records    int64 // of them, with a journal record
	RawBytes   int64
	Spent      int64 // outputs in the archive
	Indexed    int64 // index entries
	Orphans    int64
}

// Check verifies a data directory without changing anything in it: its files, the
// chain from its first block to the head, the journal, every output and mark
// against journal and counts, the indexes against the outputs, the raw blocks. It
// holds the directory meanwhile. An error means that it could not look, what is
// wrong is in the findings: it wraps ErrNoStore, ErrFormat, ErrHeld (as
// *HeldError), or is the end of ctx.
func Check(ctx context.Context, o CheckOptions) (_ *Checked, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	dir := filepath.Join(o.Dir, "db")
	if there, err := anything(dir); err != nil {
		return nil, err
	} else if !there {
		return nil, fmt.Errorf("%w in %s", ErrNoStore, o.Dir)
	}
	lock, err := holdToRead(o.Dir)
	if err != nil {
		return nil, err
	}
	if lock != nil {
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}
	c := &checker{o: o, Checked: &Checked{}, kinds: map[string]int{}}
	f, err := c.files(ctx, dir)
	if err != nil {
		return nil, err
	}
	if len(c.Findings) > 0 {
		return c.Checked, nil
	}
	db, done, err := openCopy(dir, &f, o.Logger)
	if err != nil {
		if errors.Is(err, ErrDamaged) {
			c.bad("database", "%v", err)
			return c.Checked, nil
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := db.View(func(txn *badger.Txn) error {
		c.txn = txn
		return c.contents(ctx)
	}); err != nil {
		return nil, err
	}
	return c.Checked, nil
}

type checker struct {
	*Checked
	o     CheckOptions
	txn   *badger.Txn
	kinds map[string]int // kind -> place in Findings
	head  head
	meta  meta
	left  int // spent outputs where none are kept any more

	blocks  *segment.View // while they are read
	records map[chain.Position]*checkedRecord
	spends  map[chain.TxIn]spend // by records: what must be marked
	births  map[chain.TxIn]birth // by records: what must be there
	slots   []uint32             // of main blocks, by height
}

type checkedRecord struct {
	link       chain.Link
	old        bool // below the floor, about to be swept
	raw        segment.Place
	made, used uint64 // lovelace, as the record says
	sumMade    uint64 // as the outputs say
	sumUsed    uint64
}

type spend struct {
	by  Spender
	rec *checkedRecord
}

type birth struct {
	index uint32
	rec   *checkedRecord
}

// bad adds to the findings.
func (c *checker) bad(kind, format string, args ...any) {
	i, known := c.kinds[kind]
	if !known {
		i = len(c.Findings)
		c.kinds[kind] = i
		c.Findings = append(c.Findings, Finding{Kind: kind, First: fmt.Sprintf(format, args...)})
	}
	c.Findings[i].Count++
}

func (c *checker) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func (c *checker) files(ctx context.Context, dir string) (files, error) {
	if err := noted(dir); errors.Is(err, ErrDamaged) {
		c.bad("compaction", "%v", err)
	} else if err != nil {
		return files{}, err
	}
	own, known, err := readRecord(dir)
	if errors.Is(err, ErrDamaged) {
		c.bad("own record", "%v", err)
		err = nil
	}
	if err != nil {
		return files{}, err
	}
	f, err := examine(dir, badgerOptions(Options{Memory: MinMemory, Logger: c.o.Logger}, dir), true, func(kind string, err error) error {
		c.bad(kind, "%v", err)
		return nil
	}, func(done, total int64) error {
		c.o.Progress("tables", done, total)
		return ctx.Err()
	})
	if err != nil {
		return f, err
	}
	if known && len(c.Findings) == 0 {
		if err := own.held(&f); err != nil {
			c.bad("lost", "%v", err)
		}
	}
	if !known && c.kinds["own record"] == 0 && len(c.Findings) == 0 {
		c.note("%s has no record of its own yet: what was lost as a whole cannot be told", dir)
	}
	for _, id := range f.strays {
		c.note("table %06d is what a kill left behind; the next start removes it", id)
	}
	if _, err := os.Stat(filepath.Join(c.o.Dir, discardedDir)); err == nil {
		c.note("%s is what is left of a store that was given up; the next start removes it", discardedDir)
	}
	c.Tables, c.TableBytes = len(f.tables), f.size
	return f, nil
}

func (c *checker) contents(ctx context.Context) error {
	found, err := c.single(metaKey, "description", func(v []byte) (err error) {
		c.meta, err = decodeMeta(v)
		return err
	})
	if err != nil {
		return err
	}
	if !found {
		if len(c.Findings) == 0 && c.nothing() { // killed before its first transaction
			return fmt.Errorf("%w in %s", ErrNoStore, c.o.Dir)
		}
		if len(c.Findings) == 0 {
			c.bad("description", "the database has none")
		}
		return nil
	}
	found, err = c.single(headKey, "head", func(v []byte) (err error) {
		c.head, err = decodeHead(v)
		return err
	})
	if err != nil {
		return err
	}
	if !found {
		if c.kinds["head"] == 0 && len(c.Findings) == 0 {
			c.bad("head", "the database has none")
		}
		return nil
	}
	sealed, err := c.redo()
	if err != nil {
		return err
	}
	c.state()
	if sealed {
		c.note("a large write is half done; the next start finishes it, check again after that")
		return nil
	}
	c.Read = true
	for _, step := range []func(context.Context) error{c.journal, c.walk, c.packs, c.raw, c.outputs, c.archive, c.indexes, c.others} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// nothing tells that the database has no keys at all.
func (c *checker) nothing() bool {
	it := c.txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	return !it.Valid()
}

// single reads one value; false if it is not there or wrong.
func (c *checker) single(key []byte, kind string, fn func(v []byte) error) (bool, error) {
	found, err := get(c.txn, key, fn)
	if errors.Is(err, ErrDamaged) {
		c.bad(kind, "%v", err)
		return false, nil
	}
	return found, err
}

// state is what the store says of itself.
func (c *checker) state() {
	h := &c.head
	c.State = State{
		Head: h.link, Highest: h.highest, Floor: h.base.At(), UTxOs: int64(h.utxos), Lovelace: h.lovelace, Marks: int64(h.marks), Seeded: h.seeded,
		Magic: c.meta.magic, K: c.meta.k, Archive: c.meta.archive, Made: c.meta.made, Index: h.indexInfo(),
	}
	top, base := h.link.Position(), h.base.Position()
	switch {
	case h.highest < h.link.Height:
		c.bad("head", "its height is %d, the highest ever %d", h.link.Height, h.highest)
	case base.Compare(top) > 0:
		c.bad("head", "it is %s, the floor %s lies above", h.link.At(), h.base.At())
	case h.swept.Compare(base) > 0:
		c.bad("head", "it is swept to height %d, the floor is %s", h.swept.Height, h.base.At())
	case h.highest-h.link.Height > c.meta.k:
		c.bad("head", "it is %s, more than k = %d below the highest ever, %d", h.link.At(), c.meta.k, h.highest)
	}
}

// redo looks at the redo log: sealed if a start has to apply it first.
func (c *checker) redo() (sealed bool, err error) {
	parts := 0
	err = c.each(context.Background(), []byte{keyRedo}, "redo log", func(key, v []byte) error {
		switch string(key) {
		case string(appendRedoKey(nil, redoSeal)):
			_, _, err := decodeSeal(v)
			sealed = true
			return err
		case string(appendRedoKey(nil, flushSeal)):
			sealed = true
			return nil
		}
		parts++
		_, err := decodeRedo(v, nil)
		return err
	})
	if parts > 0 && !sealed {
		c.note("%d parts of a large write that was not finished; the next start removes them", parts)
	}
	return sealed, err
}

// each calls fn for all keys with a prefix; what fn finds damaged is of a kind.
func (c *checker) each(ctx context.Context, prefix []byte, kind string, fn func(key, value []byte) error) error {
	it := c.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		item := it.Item()
		if err := item.Value(func(v []byte) error {
			err := fn(item.Key(), v)
			if errors.Is(err, ErrDamaged) {
				c.bad(kind, "%v", err)
				err = nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// others looks for keys that nobody writes.
func (c *checker) others(context.Context) error {
	known := [256]bool{'!': true} // Badger's own
	for _, b := range []byte{keyMeta, keyHead, keyRedo, keyOutput, keyMark, keyGone, keyRecord, keyPoints, keyOrphan, indexPayment, indexOther, indexStake, indexAsset} {
		known[b] = true
	}
	it := c.txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for b := range 256 {
		if known[b] {
			continue
		}
		if it.Seek([]byte{byte(b)}); it.Valid() && it.Item().Key()[0] == byte(b) {
			c.bad("unknown key", "%x", it.Item().KeyCopy(nil))
		}
	}
	return nil
}
