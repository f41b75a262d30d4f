package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/immutabledb"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/resolve"
	"github.com/ourotail/ourotail/store"
)

// Exit codes; --help lists them, and scripts may rely on them.
const (
	exitOK       = 0
	exitFailed   = 1  // anything not listed below
	exitUsage    = 2  // flags or arguments
	exitHeld     = 3  // another process holds the data directory
	exitNode     = 4  // the node cannot be reached, or refuses us
	exitDiverged = 5  // the node's chain or network is not the one the data directory holds
	exitBadInput = 6  // a block, query or file given to us is not what it should be
	exitNotThere = 7  // nothing answers: no data directory, no running follower
	exitDegraded = 8  // status --check: working on it
	exitFailing  = 9  // status --check: somebody should look
	exitDisk     = 12 // the disk has no room to go on safely
	exitDamaged  = 13 // the data directory is damaged
)

// exitUnfinished is check's: nothing is wrong, but a kill left a write half done.
const exitUnfinished = 15

const exitHelp = `Exit codes:
  0 done            4 node cannot be reached, or refuses us
  1 failed          5 node's chain or network is not the one of the data directory
  2 usage           6 a block, query or file that was given is bad
  3 directory held  7 no data directory there, or no follower running
  8, 9              status --check: the follower is degraded, is failing
  10                drill: the consumer failed a day
  11                audit: the node does not agree with the directory
  12                the disk has too little room to go on safely
  13                the data directory is damaged, or check found differences
  14                submit: the ledger rejects the transaction
  15                check: a kill left a write half done, start once and check again
  16                tail: the cursor cannot be gone on from (any more, or yet)
  17, 18, 19        tx: it failed, it is pending or not as deep as asked, it is not found or not known
`

// codedError carries the exit code of a failure.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

func coded(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// usage marks an error in what was typed.
func usage(format string, args ...any) error {
	return coded(exitUsage, fmt.Errorf(format, args...))
}

// usageArgs makes cobra's complaints about arguments usage errors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return coded(exitUsage, check(cmd, args)) }
}

// describe is what a person reads of an error: with what can be done.
func describe(err error) string {
	hint := ""
	switch {
	case errors.Is(err, store.ErrDamaged):
		hint = "ourotail check tells what is damaged; ourotail run --resync starts over"
	case errors.Is(err, store.ErrFormat):
		hint = "use the version that wrote it; or ourotail run --resync starts over"
	case errors.Is(err, store.ErrNoStore):
		hint = "is this the right --data-dir, or --network? ourotail run makes one"
	case errors.Is(err, store.ErrSettings) && strings.Contains(err.Error(), "an archive is wanted"):
		hint = "leave --archive out to go on as it is, without spent outputs; ourotail run --archive --resync starts over and keeps them"
	case errors.Is(err, store.ErrSettings):
		hint = "ourotail run --resync starts over with the settings that are wanted now"
	}
	var fatal *follow.FatalError
	if hint == "" || errors.As(err, &fatal) && fatal.Hint != "" {
		return err.Error()
	}
	return err.Error() + "\n  hint: " + hint
}

// exitCode is the code of the first of the errors that were joined, except that
// damage goes before everything. What is no failure has been dropped: see
// outcome.
func exitCode(err error) int {
	code := exitOK
	for _, e := range branches(err) {
		switch c := classify(e); {
		case c == exitDamaged:
			return c
		case code == exitOK:
			code = c
		}
	}
	return code
}

// classify gives an error its exit code.
func classify(err error) int {
	var c *codedError
	if errors.As(err, &c) {
		return c.code
	}
	var node *chainsync.Error
	var disk *ourotail.DiskError
	var files *immutabledb.Error
	switch {
	case errors.As(err, &disk), errors.Is(err, syscall.ENOSPC):
		return exitDisk
	case errors.Is(err, store.ErrHeld):
		return exitHeld
	case errors.Is(err, store.ErrDamaged):
		return exitDamaged
	case errors.Is(err, store.ErrNoStore):
		return exitNotThere
	case errors.Is(err, follow.ErrDiverged), errors.Is(err, store.ErrNetwork), errors.Is(err, resolve.ErrUnknownOutput):
		return exitDiverged
	case errors.Is(err, immutabledb.ErrNotOurs):
		return exitDiverged
	case errors.As(err, &files), errors.Is(err, ledger.ErrNotATx):
		return exitBadInput
	case errors.Is(err, chainsync.ErrRejected):
		return exitRejected
	case errors.As(err, &node):
		return exitNode
	case errors.Is(err, ledger.ErrNeedGenesis):
		return exitUsage
	}
	return exitFailed
}
