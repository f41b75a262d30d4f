package ourotail

import (
	"log/slog"

	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// Dir reads a data directory.
type Dir struct {
	store *store.Store
	path  string
}

// dir is Dir where it is embedded: its methods are seen, it is not.
type dir = Dir

// OpenDir opens an existing data directory for reading. It is held until Close:
// nobody can follow into it meanwhile. An error wraps store.ErrNoStore if there
// is none and is a *store.HeldError if another process holds it.
func OpenDir(path string, logger *slog.Logger) (*Dir, error) {
	st, err := store.Open(store.Options{Dir: path, Existing: true, Terms: ledger.Terms, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Dir{store: st, path: path}, nil
}

// Path returns the directory.
func (d *Dir) Path() string { return d.path }

// State returns what the store says about itself now.
func (d *Dir) State() store.State { return d.store.State() }

// View opens the set of unspent outputs as it is now.
func (d *Dir) View() *View { return &View{snap: d.store.Snapshot()} }

// Close closes the directory.
func (d *Dir) Close() error { return d.store.Close() }
