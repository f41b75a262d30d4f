package chainsync

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What can be wrong. Every error that Dial, Probe and the methods of Conn
// return is an *Error that wraps one of these, or the context's error.
var (
	ErrNoSocket        = errors.New("no socket at this path")
	ErrRefused         = errors.New("connection refused")
	ErrPermission      = errors.New("permission denied")
	ErrNotSocket       = errors.New("not a socket")
	ErrConnect         = errors.New("cannot connect")
	ErrSilent          = errors.New("the node does not answer")
	ErrWrongNetwork    = errors.New("the node is on another network")
	ErrNoCommonVersion = errors.New("no common protocol version")
	ErrHandshake       = errors.New("handshake failed")
	ErrDisconnected    = errors.New("the node closed the connection")
	ErrProtocol        = errors.New("the node broke the protocol")
	ErrMalformed       = errors.New("malformed message")
	ErrTooLarge        = errors.New("message too large")
	ErrClosed          = errors.New("connection closed")
	ErrUsage           = errors.New("not possible now")
)

// Error is what went wrong with a connection: what was attempted, on which
// socket, why, and what a person can do about it.
type Error struct {
	Op    string // "connect", "handshake", "intersect", "follow", "query", "mempool", "submit"
	Path  string // of the socket
	Kind  error  // one of the Err values of this package, or ledger.ErrNotATx of what was to be submitted
	Cause error  // or nil
	Hint  string // or empty
}

// Error implements error. The hint comes last, after a semicolon.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", e.Op, e.Path, e.Kind)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %s", e.Cause)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Unwrap gives errors.Is and errors.As both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// NetworkError is the cause of an ErrWrongNetwork.
type NetworkError struct {
	Ours, Theirs uint32
	Known        bool   // whether Theirs could be told from the node's answer
	Text         string // the node's own words, may be empty
}

// Error names both network magics.
func (e *NetworkError) Error() string {
	if !e.Known {
		return fmt.Sprintf("we want network magic %d, the node says: %s", e.Ours, e.Text)
	}
	return fmt.Sprintf("we want network magic %d, the node has %d", e.Ours, e.Theirs)
}

// VersionError is the cause of an ErrNoCommonVersion.
type VersionError struct {
	Ours, Theirs []int // node-to-client version numbers, ascending, without their bit 15
}

// Error names both lists.
func (e *VersionError) Error() string {
	return fmt.Sprintf("we speak node-to-client versions %s, the node %s", versionList(e.Ours), versionList(e.Theirs))
}

// versionList shortens runs: "9-21".
func versionList(versions []int) string {
	if len(versions) == 0 {
		return "none"
	}
	v := slices.Clone(versions)
	slices.Sort(v)
	v = slices.Compact(v)
	var parts []string
	for i := 0; i < len(v); {
		j := i
		for j+1 < len(v) && v[j+1] == v[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(v[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", v[i], v[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// Retryable tells whether trying again soon may help by itself: the node is
// starting, restarting or overloaded. If not, a person has to change
// something (path, permission, network, software), and a retry should be slow
// and say what it waits for.
func Retryable(err error) bool {
	for _, kind := range []error{ErrPermission, ErrNotSocket, ErrWrongNetwork, ErrNoCommonVersion,
		ErrHandshake, ErrProtocol, ErrMalformed, ErrTooLarge, ErrUsage, ErrClosed, ErrRejected} {
		if errors.Is(err, kind) {
			return false
		}
	}
	for _, kind := range []error{ErrNoSocket, ErrRefused, ErrConnect, ErrSilent, ErrDisconnected} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
