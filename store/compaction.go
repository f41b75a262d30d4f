package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// accountant counts what compactions read and write. Badger does not tell errors
// in them: keys behind a damaged block, and a table that could not be written, are
// left out, the tables they were in are removed, and nothing but the numbers shows
// it. So for each compaction, what it says in the log that it took and dropped is
// compared with the keys of the tables that the manifest says it removed and made.
//
// Its methods are called by Badger's goroutines through the log.
type accountant struct {
	dir  string
	opts badger.Options
	fail func(error)

	mu       sync.Mutex
	manifest *os.File
	offset   int64
	tables   map[uint64]int64 // keys of every table that the manifest names
	sums     map[int]taken    // by compactor, of its present compaction
	changes  []taken          // of compactions, not yet claimed by one
	off      bool
}

// taken is what a compaction took in and what came out.
type taken struct{ in, out int64 }

// newAccountant begins with the tables that there are. Badger must not be open.
func newAccountant(dir string, opts badger.Options, f *files, fail func(error)) (*accountant, error) {
	a := &accountant{dir: dir, opts: opts, fail: fail, tables: map[uint64]int64{}, sums: map[int]taken{}}
	for id, end := range f.tables {
		a.tables[id] = end.keys
	}
	if f.empty {
		return a, nil // there is no manifest yet
	}
	return a, a.open(f.manifestEnd)
}

func (a *accountant) open(offset int64) (err error) {
	a.manifest, err = os.Open(filepath.Join(a.dir, badger.ManifestFilename))
	a.offset = offset
	return err
}

func (a *accountant) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.off = true
	if a.manifest == nil {
		return nil
	}
	return a.manifest.Close()
}

// took is told, before the manifest changes, of keys that a compaction wrote to a
// table and of keys that it dropped meanwhile.
func (a *accountant) took(compactor int, wrote, dropped uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.off {
		return
	}
	s := a.sums[compactor]
	a.sums[compactor] = taken{s.in + int64(wrote+dropped), s.out + int64(wrote)}
	a.catchUp() // the tables it reads are still there
}

// ended is told that a compaction is over, in the goroutine that did it.
func (a *accountant) ended(compactor int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.off {
		return
	}
	a.catchUp()
	sum := a.sums[compactor]
	delete(a.sums, compactor)
	for i, c := range a.changes {
		if c == sum {
			a.changes = append(a.changes[:i], a.changes[i+1:]...)
			return
		}
	}
	a.off = true
	a.fail(fmt.Errorf("%w: a compaction took %d keys and wrote %d, of tables that held others: %v (keys in and out)", ErrDamaged, sum.in, sum.out, a.changes))
}

// catchUp reads what was added to the manifest.
func (a *accountant) catchUp() {
	if err := a.read(); err != nil {
		a.off = true
		a.fail(fmt.Errorf("watch the compactions: %w", err))
	}
}

func (a *accountant) read() error {
	if a.manifest == nil {
		if err := a.open(manifestHeader); err != nil {
			return err
		}
	}
	if err := a.tail(); err != nil {
		return err
	}
	old, err := a.manifest.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(a.manifest.Name())
	if err != nil || os.SameFile(old, now) {
		return err
	}
	// It was written anew, with one change more than its last.
	if err := errors.Join(a.tail(), a.manifest.Close(), a.open(manifestHeader)); err != nil {
		return err
	}
	before := a.tables
	a.tables = map[uint64]int64{}
	first, err := a.set()
	if err != nil {
		return err
	}
	changes := manifestChanges{}
	for id := range before {
		if !first.creates(id) {
			changes = append(changes, manifestChange{id: id, deleted: true})
		}
	}
	a.tables = before
	for _, c := range first {
		if _, known := before[c.id]; !known {
			changes = append(changes, c)
		}
	}
	if err := a.apply(changes); err != nil {
		return err
	}
	return a.tail()
}

// tail applies whole change sets up to the end.
func (a *accountant) tail() error {
	for {
		set, err := a.set()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = a.apply(set)
		}
		if err != nil {
			return err
		}
	}
}

// apply takes over a change set: a table of a full memtable, or a compaction.
func (a *accountant) apply(set manifestChanges) error {
	var c taken
	compacted := false
	for _, ch := range set {
		if ch.deleted {
			compacted = true
			c.in += a.tables[ch.id]
			delete(a.tables, ch.id)
			continue
		}
		end, err := checkTable(table.NewFilename(ch.id, a.dir), false)
		if err != nil {
			return err
		}
		a.tables[ch.id] = end.keys
		c.out += end.keys
	}
	if compacted {
		a.changes = append(a.changes, c)
	}
	return nil
}

// set reads the next change set; io.EOF if it is not whole.
func (a *accountant) set() (manifestChanges, error) {
	var head [8]byte
	if _, err := a.manifest.ReadAt(head[:], a.offset); err != nil {
		return nil, io.EOF
	}
	n := int64(uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3]))
	info, err := a.manifest.Stat()
	if err != nil {
		return nil, err
	}
	if a.offset+8+n > info.Size() {
		return nil, io.EOF
	}
	b := make([]byte, n)
	if _, err := a.manifest.ReadAt(b, a.offset+8); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	a.offset += 8 + n
	return decodeChanges(b)
}

const manifestHeader = 8

type manifestChange struct {
	id      uint64
	deleted bool
}

type manifestChanges []manifestChange

func (m manifestChanges) creates(id uint64) bool {
	for _, c := range m {
		if c.id == id && !c.deleted {
			return true
		}
	}
	return false
}

// decodeChanges reads Badger's protobuf message ManifestChangeSet: field 1 is a
// change, whose field 1 is the table and field 2 what happens to it, 1 for its
// end; the others are numbers, too.
func decodeChanges(b []byte) (set manifestChanges, err error) {
	r := reader{b: b}
	for len(r.b) > 0 && !r.bad {
		if r.uvarint() != 1<<3|2 {
			r.fail()
			break
		}
		in := reader{b: r.bytes(int(r.below(1 << 20)))}
		var c manifestChange
		for len(in.b) > 0 && !in.bad {
			switch tag, v := in.uvarint(), in.uvarint(); {
			case tag&7 != 0:
				in.fail()
			case tag == 1<<3:
				c.id = v
			case tag == 2<<3:
				c.deleted = v == 1
			}
		}
		if in.bad {
			r.fail()
		}
		set = append(set, c)
	}
	return set, r.end("a change of the manifest")
}

// badgerEvents turns Badger's log into what we have to know of it.
type badgerEvents struct {
	accounts atomic.Pointer[accountant]
	flushes  atomic.Int32 // failures in a row to make a table of a memtable
	stuck    atomic.Bool  // a goroutine of Badger's was stopped
	fail     func(error)
}

// debug gets every message that is noise to people.
func (e *badgerEvents) debug(format string, args []any) {
	a := e.accounts.Load()
	if a == nil {
		return
	}
	switch format {
	case "[%d] LOG Compact. Added %d keys. Skipped %d keys. Iteration took: %v":
		id, ok1 := arg[int](args, 0)
		wrote, ok2 := arg[uint64](args, 1)
		dropped, ok3 := arg[uint64](args, 2)
		if ok1 && ok2 && ok3 {
			a.took(id, wrote, dropped)
		}
	case "[Compactor: %d] Compaction for level: %d DONE":
		if id, ok := arg[int](args, 0); ok {
			a.ended(id)
		}
	}
}

// error gets every message about what went wrong, from the goroutine to which it
// happened. Where the disk was full, that is the last thing the goroutine does:
// what it would write next could stand behind half a change of the manifest.
func (e *badgerEvents) error(format string, args []any) {
	var err error
	switch format {
	case "[Compactor: %d] LOG Compact FAILED with error: %+v: %+v":
		cause, _ := arg[error](args, 1)
		err = fmt.Errorf("compact the tables: %w", cause)
	case "error flushing memtable to disk: %v, retrying":
		e.flushes.Add(1)
		cause, _ := arg[error](args, 0)
		err = fmt.Errorf("make a table: %w", cause)
	default:
		return
	}
	full := strings.Contains(err.Error(), syscall.ENOSPC.Error())
	if full { // Badger's errors wrap nothing
		err = fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	e.fail(err)
	if full {
		e.stuck.Store(true)
		select {}
	}
}

func arg[T any](args []any, i int) (v T, ok bool) {
	if i < len(args) {
		v, ok = args[i].(T)
	}
	return v, ok
}

// damageFile says in words what happened to a database while it was open, when
// its files do not show it.
const damageFile = "DAMAGED"

// failed notes what went wrong behind our back: the next write says it. Damage
// that the files will not show is written down.
func (s *Store) failed(err error) {
	damage := errors.Is(err, ErrDamaged)
	if s.failure.CompareAndSwap(nil, &err) {
		close(s.failing)
	} else if was := s.failure.Load(); !damage || errors.Is(*was, ErrDamaged) || !s.failure.CompareAndSwap(was, &err) {
		return
	}
	s.log.Error("the database failed", "error", err)
	if !damage {
		return
	}
	path := filepath.Join(s.opts.Dir, "db", damageFile)
	if werr := os.WriteFile(path, []byte(err.Error()+"\n"), 0o600); werr != nil {
		s.log.Error("the damage could not be written down", "file", path, "error", werr)
	}
}

// noted returns damage that an earlier process wrote down.
func noted(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, damageFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: when it was last open: %s", ErrDamaged, b)
}
