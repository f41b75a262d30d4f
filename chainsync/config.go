package chainsync

import (
	"log/slog"
	"time"
)

// Config says which node to talk to and how. Only SocketPath and Magic have to
// be set.
type Config struct {
	SocketPath string // the node's Unix socket
	Magic      uint32 // network magic, not 0

	HandshakeTimeout time.Duration // for connecting and agreeing on a version; default 10 s
	AnswerTimeout    time.Duration // for any answer the node owes after that, not for a quiet chain; default 60 s
	WriteTimeout     time.Duration // for the node to take our few bytes; default 30 s

	MaxInFlight int // requests outstanding far from the tip; default 200
	QueueBytes  int // block bytes received and not yet taken by Next above which nothing is requested; default 1 MiB
	MaxMessage  int // longest message accepted, in bytes; default 64 MiB

	Logger *slog.Logger // default: discards
}

const (
	defaultHandshakeTimeout = 10 * time.Second
	defaultAnswerTimeout    = 60 * time.Second
	defaultWriteTimeout     = 30 * time.Second
	defaultMaxInFlight      = 200
	defaultQueueBytes       = 1 << 20
	defaultMaxMessage       = 64 << 20
)

// MaxPoints is the number of points that Intersect offers at most. The node
// tries them one after the other; a few dozen are customary.
const MaxPoints = 256

func (c Config) withDefaults() Config {
	setDefault(&c.HandshakeTimeout, defaultHandshakeTimeout)
	setDefault(&c.AnswerTimeout, defaultAnswerTimeout)
	setDefault(&c.WriteTimeout, defaultWriteTimeout)
	setDefault(&c.MaxInFlight, defaultMaxInFlight)
	setDefault(&c.QueueBytes, defaultQueueBytes)
	setDefault(&c.MaxMessage, defaultMaxMessage)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
