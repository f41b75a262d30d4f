package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/gofrs/flock"

	"github.com/ourotail/ourotail/chain"
)

// Store is an open store. Outputs, Commit, Rollback and Genesis belong to one
// goroutine at a time; everything else may be called from any.
type Store struct {
	opts   Options
	log    *slog.Logger
	db     *badger.DB
	wal    *wal // nil where nothing is synced: tests
	lock   *flock.Flock
	limits limits
	hook   func(string) error
	closed atomic.Bool
	opened bool // Open came to its end

	failure  atomic.Pointer[error] // of Badger's own goroutines
	failing  chan struct{}         // closed once there is a failure
	accounts *accountant
	own      ownRecord
	recorded bool // own is this process'

	// redoLock is held for writing while the database is between two heads
	// (redo.go), for reading while a view of it is opened.
	redoLock sync.RWMutex

	mu      sync.Mutex // one writer: everything below
	head    head
	links   []chain.Link // base, then every block with a record; the last is the head
	orphans map[chain.Hash]chain.Link
	known   []chain.Hash // orphans that the write under way removes
	broken  error
	ops     opset
	entries []badger.Entry
	rec     record

	gathered gathered

	recent  *recent
	looking bool        // Outputs was called since the head changed
	lookup  *badger.Txn // of Outputs, from commit to commit
	found   arena       // bytes that Outputs handed out

	verified bool // the tables were, since the head changed

	state atomic.Pointer[State]
}

// Open opens the store, making it if it is not there. It is the recovery
// procedure: it finishes or removes what a kill interrupted, and checks the head
// against the journal. It returns errors that wrap ErrNetwork, ErrFormat,
// ErrSettings, ErrHeld (as *HeldError), ErrNoStore, ErrDamaged or ErrNotOurs.
func Open(opts Options) (_ *Store, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Memory == 0 {
		opts.Memory = DefaultMemory
	}
	opts.Memory = max(opts.Memory, MinMemory)
	if opts.K < 1 && !opts.Existing {
		return nil, fmt.Errorf("%w: k is %d, it must be at least 1", ErrSettings, opts.K)
	}
	s := &Store{opts: opts, log: opts.Logger, hook: opts.hook, failing: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.openDB(); err != nil {
		return nil, err
	}
	s.limits = limitsOf(s.db)
	s.recent = newRecent(recentSize(opts))
	db := filepath.Join(opts.Dir, "db")
	if !opts.noSync {
		if s.wal, err = openWAL(db, s.nextLog); err != nil {
			return nil, err
		}
	}
	if err := s.openMeta(); err != nil {
		return nil, err
	}
	log, err := newestWAL(db)
	if err != nil {
		return nil, err
	}
	if err := s.keepRecord(s.own.version, log); err != nil {
		return nil, err
	}
	if err := s.loadHead(); err != nil {
		return nil, err
	}
	if err := s.recoverRedo(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.publish()
	s.opened = true
	return s, nil
}

func (s *Store) openDB() (err error) {
	dir := filepath.Join(s.opts.Dir, "db")
	if s.opts.Existing {
		if there, err := anything(dir); err != nil {
			return err
		} else if !there {
			return fmt.Errorf("%w in %s", ErrNoStore, s.opts.Dir)
		}
	}
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return err
	}
	if s.lock, err = hold(s.opts.Dir); err != nil {
		return err
	}
	if err := s.dropDiscarded(); err != nil {
		return err
	}
	if s.opts.Resync {
		if err := errors.Join(s.startOver(), s.dropDiscarded()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Badger panics on some kinds of damage that checkTables does not look for.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	s.opts.events = &badgerEvents{fail: s.failed}
	opts := badgerOptions(s.opts, dir)
	memTable, err := s.examine(dir, opts)
	if err != nil {
		return err
	}
	if err := dropUnborn(dir); err != nil {
		return err
	}
	// A process with larger memtables was killed: replaying its files into ours
	// would end this one.
	if memTable > opts.MemTableSize {
		s.log.Info("making tables of larger write-ahead files", "bytes", memTable)
		if s.db, err = badger.Open(opts.WithMemTableSize(memTable)); err == nil {
			err = s.db.Close()
		}
	}
	if err == nil {
		s.db, err = badger.Open(opts)
	}
	if err != nil {
		s.db = nil
		if strings.Contains(err.Error(), "Cannot acquire directory lock") { // Badger's errors wrap nothing
			return holder(s.opts.Dir)
		}
		var path *fs.PathError
		var number syscall.Errno
		if errors.As(err, &path) || errors.As(err, &number) { // no permission, no space
			return fmt.Errorf("open the database in %s: %w", dir, err)
		}
		return fmt.Errorf("%w: open the database in %s: %w", ErrDamaged, dir, err)
	}
	return nil
}

// examine checks the files against each other and against our own record, and
// returns how large a memtable they need.
func (s *Store) examine(dir string, opts badger.Options) (memTable int64, err error) {
	if err := noted(dir); err != nil {
		return 0, err
	}
	own, known, err := readRecord(dir)
	if err != nil {
		return 0, err
	}
	f, err := examine(dir, opts, true, func(_ string, err error) error { return err }, nil)
	if err != nil {
		return 0, err
	}
	if f.empty && s.opts.Existing {
		return 0, fmt.Errorf("%w in %s", ErrNoStore, s.opts.Dir)
	}
	if s.accounts, err = newAccountant(dir, opts, &f, s.failed); err != nil {
		return 0, err
	}
	s.opts.events.accounts.Store(s.accounts)
	if f.empty {
		return 0, nil
	}
	if known {
		if err := own.held(&f); err != nil {
			return 0, err
		}
	}
	if !s.opts.noSync {
		if err := syncLogs(f.logs); err != nil {
			return 0, err
		}
	}
	// Badger is about to remove and rename files; what they hold is known.
	own.version, own.log = f.newest, 0
	s.own = own
	if known {
		if err := own.write(dir, !s.opts.noSync); err != nil {
			return 0, err
		}
	}
	// Keys must not be twice in the tables, see accountant.
	return f.memTable(), f.dropFlushed()
}

// openMeta reads what the store was made for, or writes it into an empty one.
func (s *Store) openMeta() error {
	var m meta
	var found bool
	err := s.db.View(func(txn *badger.Txn) (err error) {
		found, err = get(txn, metaKey, func(v []byte) (err error) {
			m, err = decodeMeta(v)
			return err
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case !found && s.opts.Existing:
		return fmt.Errorf("%w in %s", ErrNoStore, s.opts.Dir)
	case !found:
		m = meta{version: formatVersion, magic: s.opts.Magic, k: s.opts.K, archive: s.opts.Archive, made: time.Now().Unix()}
		h := emptyHead()
		if err := s.write([]op{{key: metaKey, val: appendMeta(nil, m)}}, &h); err != nil {
			return err
		}
	case s.opts.Existing:
		s.opts.Magic, s.opts.K, s.opts.Archive = m.magic, m.k, m.archive
	case m.magic != s.opts.Magic:
		return fmt.Errorf("%w: %s holds network magic %d, wanted is %d", ErrNetwork, s.opts.Dir, m.magic, s.opts.Magic)
	case m.k != s.opts.K:
		return fmt.Errorf("%w: %s was made for k = %d, wanted is %d", ErrSettings, s.opts.Dir, m.k, s.opts.K)
	case m.archive != s.opts.Archive:
		return fmt.Errorf("%w: %s keeps %s", ErrSettings, s.opts.Dir, retention(m.archive))
	}
	s.state.Store(&State{Made: m.made})
	return nil
}

func retention(archive bool) string {
	if archive {
		return "spent outputs (an archive), wanted is one that does not"
	}
	return "unspent outputs only, an archive is wanted"
}

// nextLog is told that a write-ahead file has begun: all that is in the ones
// before is on disk, and the last transaction may be the new one's first.
func (s *Store) nextLog(n int) error {
	version, err := s.version()
	if err != nil {
		return err
	}
	return s.keepRecord(version-1, n)
}

// version is the last transaction's: each writes the head.
func (s *Store) version() (version uint64, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get(headKey)
		if err == nil {
			version = item.Version()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the head: %w", err)
	}
	return version, nil
}

func (s *Store) loadHead() error {
	return s.db.View(func(txn *badger.Txn) error {
		found, err := get(txn, headKey, func(v []byte) (err error) {
			s.head, err = decodeHead(v)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("%w: it has no head", ErrDamaged)
		}
		return err
	})
}

// load reads the head and the newest links and checks that they agree.
func (s *Store) load() error {
	s.orphans = map[chain.Hash]chain.Link{}
	if err := s.loadHead(); err != nil {
		return err
	}
	return s.db.View(func(txn *badger.Txn) error {
		if err := s.loadLinks(txn); err != nil {
			return err
		}
		return s.loadOrphans(txn)
	})
}

// loadLinks reads the records above the base: they must lead from it to the
// head without a gap, and none may lie above.
func (s *Store) loadLinks(txn *badger.Txn) error {
	s.links = append(s.links[:0], s.head.base)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyRecord}})
	defer it.Close()
	for it.Seek(appendPositionKey(nil, keyRecord, s.head.base.Position())); it.Valid(); it.Next() {
		pos, err := positionFromKey(it.Item().Key())
		if err != nil {
			return err
		}
		if pos.Compare(s.head.base.Position()) <= 0 {
			continue // not swept yet
		}
		var l chain.Link
		if err := it.Item().Value(func(v []byte) (err error) {
			l, err = recordLink(v)
			return err
		}); err != nil {
			return err
		}
		below := s.links[len(s.links)-1]
		if l.Position() != pos || !follows(below, l) {
			return fmt.Errorf("%w: the journal has %s behind %s", ErrDamaged, l.At(), below.At())
		}
		s.links = append(s.links, l)
	}
	if top := s.links[len(s.links)-1]; top != s.head.link {
		return fmt.Errorf("%w: the journal ends at %s, the head is %s", ErrDamaged, top.At(), s.head.link.At())
	}
	return nil
}

// follows tells whether l can stand on below: its parent, and a height that is
// one higher, or the same for a boundary block. The first block of a chain has
// height 0, or 1 where the genesis boundary block is not served.
func follows(below, l chain.Link) bool {
	if below.Point.IsOrigin() {
		return l.Height == 0 || l.Height == 1 && !l.Boundary
	}
	want := below.Height + 1
	if l.Boundary {
		want = below.Height
	}
	return l.Parent == below.Point.Hash && l.Height == want && l.Position().Compare(below.Position()) > 0
}

func (s *Store) loadOrphans(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{keyOrphan}})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := it.Item().Value(func(v []byte) error {
			l, err := decodeLink(v)
			s.orphans[l.Point.Hash] = l
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// publish makes the head visible to State.
func (s *Store) publish() {
	old := s.state.Load()
	h := &s.head
	s.state.Store(&State{
		Head: h.link, Highest: h.highest, Floor: s.floor().At(),
		UTxOs: int64(h.utxos), Lovelace: h.lovelace, Marks: int64(h.marks), Seeded: h.seeded,
		Magic: s.opts.Magic, K: s.opts.K, Archive: s.opts.Archive, Made: old.Made,
		Index: h.indexInfo(),
	})
}

// State returns what the store held after the last commit or rollback. It never
// waits.
func (s *Store) State() State { return *s.state.Load() }

// Head returns the newest committed block; the zero link with OriginHeight if
// there is none.
func (s *Store) Head() chain.Link { return s.state.Load().Head }

// Highest returns the greatest height ever committed.
func (s *Store) Highest() chain.Height { return s.state.Load().Highest }

// Floor returns the oldest point that Rollback accepts.
func (s *Store) Floor() chain.At { return s.state.Load().Floor }

// Close waits for a write under way and closes the database. Snapshots must
// have been closed before.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.broken == nil && s.failure.Load() == nil && (s.opts.Room == nil || s.opts.Room() == nil) {
		err = s.flush() // if not, what was gathered is asked for again
	}
	return errors.Join(err, s.release())
}

func (s *Store) release() error {
	s.endLookups()
	var errs []error
	if s.db != nil {
		if err := s.lastRecord(); err != nil {
			return errors.Join(err, errors.New("the database was not closed, end the process"))
		}
		closed, err := s.closeDB()
		if errs = append(errs, err); !closed {
			return errors.Join(errs...) // the directory is ours for as long as the process lives
		}
	}
	if s.wal != nil {
		errs = append(errs, s.wal.close())
	}
	if s.accounts != nil {
		errs = append(errs, s.accounts.close())
	}
	if err := s.failure.Load(); err != nil {
		errs = append(errs, *err)
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}

// lastRecord says that write-ahead files are about to become tables.
func (s *Store) lastRecord() error {
	if !s.recorded {
		return nil
	}
	version := s.own.version
	if s.opened && s.broken == nil {
		if v, err := s.version(); err == nil { // if not, opening will say it
			version = v
		}
	}
	err := s.keepRecord(version, 0)
	if errors.Is(err, syscall.ENOSPC) { // to have none takes no room
		s.log.Warn("no room for the store's own record, it is removed", "error", err)
		err = os.Remove(filepath.Join(s.opts.Dir, "db", recordFile))
	}
	return err
}

// closeDB closes Badger. Where the disk is full it would wait until there is
// room; then it is left as a kill leaves it, and false returned: Badger is still
// at it.
func (s *Store) closeDB() (bool, error) {
	if s.opts.events.stuck.Load() {
		return false, fmt.Errorf("the database was not closed, end the process; the next start recovers it: %w", *s.failure.Load())
	}
	closed := make(chan error, 1)
	go func() {
		s.merge()
		closed <- s.db.Close()
	}()
	before := s.opts.events.flushes.Load()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-closed:
			return true, err
		case <-tick.C:
		}
		if s.opts.events.stuck.Load() || s.opts.events.flushes.Load()-before >= 3 {
			return false, fmt.Errorf("the database could not be closed, end the process; the next start recovers it: %w", *s.failure.Load())
		}
	}
}

// merge brings all tables into the last level where what lies above it has grown
// beyond a quarter of it: what was overwritten and deleted is in both. It never
// has for long in a large store, and takes moments in a small one.
func (s *Store) merge() {
	var above, last, levels int64
	for _, l := range s.db.Levels() {
		if l.Size == 0 {
			continue
		}
		levels++
		above, last = above+last, l.Size
	}
	if levels < 2 || above <= last/4 || s.failure.Load() != nil {
		return
	}
	if free := freeBytes(s.opts.Dir); free >= 0 && free < 2*(above+last) {
		s.log.Warn("too little room to merge the tables", "bytes", above+last, "free", free)
		return
	}
	began := time.Now()
	err := s.db.Flatten(1)
	use := s.DiskUse()
	s.log.Info("merged the tables", "bytes_before", above+last, "bytes", use.TableBytes, "took", time.Since(began).Round(time.Millisecond))
	if err != nil {
		s.log.Debug("merging ended early", "error", err)
	}
}

// dropUnborn removes log files without a byte. Badger makes a file and then
// gives it its size; a kill between the two leaves one that it refuses to open,
// and nothing can have been written to it.
func dropUnborn(dir string) error {
	for _, pattern := range []string{"*.mem", "*.vlog"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			if info.Size() == 0 {
				if err := os.Remove(name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
