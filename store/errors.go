package store

import (
	"errors"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

var (
	// ErrNetwork is wrapped when the directory belongs to another network.
	ErrNetwork = errors.New("the store belongs to another network")
	// ErrFormat is wrapped when another version wrote the directory.
	ErrFormat = errors.New("the store was written by another version")
	// ErrSettings is wrapped when k or the retention differ from what the store
	// was made with.
	ErrSettings = errors.New("the store was made with other settings")
	// ErrNoStore is wrapped when a store that must exist does not.
	ErrNoStore = errors.New("there is no store")
	// ErrDamaged is wrapped when what is on disk contradicts itself or does not
	// decode. Nothing repairs it but starting over (Options.Resync).
	ErrDamaged = errors.New("the store is damaged")
	// ErrNotOurs is wrapped when starting over meets a file that is none of a
	// store's: nothing was touched.
	ErrNotOurs = errors.New("this is not a file of a store, nothing is removed beside it")
	// ErrHeld is wrapped by every HeldError.
	ErrHeld = errors.New("the data directory is in use")
	// ErrBroken is wrapped by every write after one that failed: what is on disk
	// is known again only after closing and opening.
	ErrBroken = errors.New("a write failed, the store must be opened anew")
	// ErrNotNext is wrapped by Commit for a block that does not follow.
	ErrNotNext = errors.New("the block does not follow the head")
	// ErrNotEmpty is wrapped by Genesis on a store that has been filled.
	ErrNotEmpty = errors.New("the store is not empty")
	// ErrBelowFloor is wrapped by Rollback for a point it cannot go back to
	// because what would undo the blocks above it is gone.
	ErrBelowFloor = errors.New("the point lies below the oldest we can roll back to")
	// ErrUnknownPoint is wrapped for a point that is not on our chain.
	ErrUnknownPoint = errors.New("the point is not on our chain")
	// ErrNoRecord is wrapped by Effects for a block without a journal record.
	ErrNoRecord = errors.New("the journal has no record of the block")
	// ErrNoTerms is wrapped where indexes are asked for and Options.Terms is nil.
	ErrNoTerms = errors.New("the store was opened without index terms")
	// ErrClosed is returned by whatever is called after Close.
	ErrClosed = errors.New("the store is closed")
)

// HeldError says who holds the data directory.
type HeldError struct {
	Dir     string
	PID     int    // 0 if the holder left no note
	Command string // as the holder wrote it; it may be empty
}

// Error implements error.
func (e *HeldError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Command != "" {
		who += " (" + e.Command + ")"
	}
	return fmt.Sprintf("the data directory %s is in use by %s", e.Dir, who)
}

// Unwrap returns ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// FloorError is the typed form of ErrBelowFloor.
type FloorError struct {
	To    chain.Point
	Floor chain.At
}

// Error implements error.
func (e *FloorError) Error() string {
	return fmt.Sprintf("cannot roll back to %s: %v, %s", e.To, ErrBelowFloor, e.Floor)
}

// Unwrap returns ErrBelowFloor.
func (e *FloorError) Unwrap() error { return ErrBelowFloor }
