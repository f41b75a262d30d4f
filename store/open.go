package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// Store is an open store. Outputs, Commit, Rollback and Genesis belong to one
// goroutine at a time; everything else may be called from any.
type Store struct {
	opts   Options
	log    *slog.Logger
	db     *badger.DB
	wal    *wal // nil where nothing is synced: tests
	lock   locks
	limits limits
	hook   func(string) error
	closed atomic.Bool
	opened bool // Open came to its end

	abandoned bool // Badger is still at something that it will not end

	failure  atomic.Pointer[error] // of Badger's own goroutines
	failing  chan struct{}         // closed once there is a failure
	accounts *accountant
	own      ownRecord
	recorded bool // own is this process'

	// redoLock is held for writing while the database is between two heads
	// (redo.go), for reading while a view of it is opened.
	redoLock sync.RWMutex

	// use is held for reading by everybody who reads the database, and by Close for
	// ever: its tables are mapped memory.
	use sync.RWMutex

	mu      sync.Mutex // one writer: everything below
	head    head
	links   []chain.Link // base, then every block with a record; the last is the head
	orphans map[chain.Hash]orphan
	known   []chain.Hash // orphans that the write under way removes
	undone  []orphan     // that it makes
	blocks  *segment.Files

	undoneBytes int64 // written by rollbacks since Open

	unwanted map[uint32]int // files of blocks to be removed -> the write-ahead file that must be gone before
	broken   error
	ops      opset
	entries  []badger.Entry
	rec      record

	gathered gathered

	recent  *recent
	looking bool        // Outputs was called since the head changed
	lookup  *badger.Txn // of Outputs, from commit to commit
	found   arena       // bytes that Outputs handed out

	verified bool // the tables were, since the head changed

	build     *build     // the first pass of the indexes that is under way
	building  sync.Mutex // held by whoever makes one
	indexDone indexDone

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
	if err := s.compact(); err != nil {
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
		db, err := s.openBadger(opts.WithMemTableSize(memTable))
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			return err
		}
	}
	s.db, err = s.openBadger(opts)
	return err
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
	if err := filesFor(&f); err != nil {
		return 0, err
	}
	if err := s.roomFor("opening the database", roomToOpen(&f, opts)); err != nil {
		return 0, err
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
	case s.opts.Archive && s.opts.Compact:
		return fmt.Errorf("%w: an archive is wanted, and to give it up", ErrSettings)
	case s.opts.Archive && !m.archive:
		return fmt.Errorf("%w: %s keeps unspent outputs only, an archive is wanted", ErrSettings, s.opts.Dir)
	}
	s.opts.Archive = m.archive
	s.state.Store(&State{Made: m.made})
	return nil
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
