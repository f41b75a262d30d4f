package chainsync

import "errors"

// problem makes an error of this connection.
func (c *Conn) problem(op string, kind, cause error, hint string) *Error {
	return &Error{Op: op, Path: c.cfg.SocketPath, Kind: kind, Cause: cause, Hint: hint}
}

// peerProblem turns what the reader or a writer met into an error with a hint.
// err wraps one of the kinds, the outermost of which is taken.
func (c *Conn) peerProblem(err error) *Error {
	c.mu.Lock()
	op := c.op
	c.mu.Unlock()
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			hint := k.hint
			if hint == disagree && op == opHandshake {
				hint = stranger
			}
			return &Error{Op: op, Path: c.cfg.SocketPath, Kind: k.kind, Cause: strip(err, k.kind), Hint: hint}
		}
	}
	return &Error{Op: op, Path: c.cfg.SocketPath, Kind: ErrProtocol, Cause: err}
}

// opHandshake is Error.Op until the handshake is over.
const opHandshake = "handshake"

const disagree = "the node's software and ourotail disagree on the protocol: please report this with both versions"

// stranger is the hint while it has not yet shown that it is a node at all.
const stranger = "is this really a node's socket? If it is, its software and ourotail disagree on the protocol: please report this with both versions"

// kinds in the order in which they are looked for, with what a person can do.
var kinds = []struct {
	kind error
	hint string
}{
	{ErrWrongNetwork, "name the node's network, or use the socket of a node on ours"},
	{ErrNoCommonVersion, "use a release of ourotail made for this node's version, or another node"},
	{ErrHandshake, "is this a cardano-node's local socket?"},
	{ErrTooLarge, disagree},
	{ErrMalformed, disagree},
	{ErrSilent, "the node is frozen or overloaded: look at its log"},
	{ErrDisconnected, "it stopped, or it dropped us: look at its log"},
	{ErrClosed, ""},
	{ErrProtocol, disagree},
}

// strip takes the kind off an error made by fmt.Errorf("%w: ...", kind, ...),
// so that it is not said twice.
func strip(err, kind error) error {
	text, prefix := err.Error(), kind.Error()
	if text == prefix {
		return nil
	}
	if len(text) > len(prefix)+2 && text[:len(prefix)+2] == prefix+": " {
		return stripped{err, text[len(prefix)+2:]}
	}
	return err
}

// stripped is an error that shows a part of its text.
type stripped struct {
	error
	text string
}

func (s stripped) Error() string { return s.text }
func (s stripped) Unwrap() error { return s.error }
