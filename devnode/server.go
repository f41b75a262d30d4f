package devnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// errScripted ends a connection because a fault asked for it.
var errScripted = errors.New("closed by script")

// ErrSocketInUse is wrapped when another server listens on the socket.
var ErrSocketInUse = errors.New("another process is serving this socket")

// Config says what to serve, and where. Socket and Chain are required.
type Config struct {
	Socket       string
	Magic        uint32
	Chain        *Chain
	Versions     []uint16      // offered versions, ascending; nil is 16 to 23
	SegmentSize  int           // payload of a segment; 0 is DefaultSegmentSize
	WriteTimeout time.Duration // a client that reads nothing for so long is dropped; 0 is DefaultWriteTimeout
	Logger       *slog.Logger  // nil discards
	Behaviour    Behaviour     // to begin with; Behave changes it

	// Growth of a generated chain, by Serve: a block each Interval (0: no
	// growth), and with the probability ForkRate per block a fork instead, of a
	// depth of 1 to MaxDepth, shallow ones being the likelier.
	Interval time.Duration
	ForkRate float64
	MaxDepth int
	Seed     uint64 // of the choices just named
	// WallClock puts new blocks into the slot of the time they are made at, as
	// counted from the chain's system start, so that the tip is as old as it
	// is. The blocks then depend on when they are made.
	WallClock bool
}

// Server serves a chain on a Unix socket. Make one with NewServer and call Run
// once; the other methods may be called at any time from any goroutine.
type Server struct {
	cfg   Config
	log   *slog.Logger
	gate  gate
	ready chan struct{}

	mu       sync.Mutex
	behave   *Behaviour
	conns    map[*conn]struct{}
	nextID   int
	listener *net.UnixListener
	stopped  bool
	wg       sync.WaitGroup
	once     sync.Once
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg Config) (*Server, error) {
	if cfg.Chain == nil || cfg.Socket == "" {
		return nil, errors.New("devnode: a server needs a socket path and a chain")
	}
	if cfg.SegmentSize == 0 {
		cfg.SegmentSize = DefaultSegmentSize
	}
	if cfg.SegmentSize < 1 || cfg.SegmentSize > maxSegmentSize {
		return nil, fmt.Errorf("devnode: segment size %d is not within 1 to %d", cfg.SegmentSize, maxSegmentSize)
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = DefaultWriteTimeout
	}
	if cfg.Versions == nil {
		for v := uint16(FirstVersion); v <= LastVersion; v++ {
			cfg.Versions = append(cfg.Versions, v)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, log: cfg.Logger, ready: make(chan struct{}), behave: &cfg.Behaviour,
		conns: map[*conn]struct{}{}}, nil
}

// Ready returns a channel that is closed once the server listens.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Socket returns the path it serves.
func (s *Server) Socket() string { return s.cfg.Socket }

// Chain returns the chain it serves.
func (s *Server) Chain() *Chain { return s.cfg.Chain }

// Run listens and serves until ctx ends; then it closes every connection,
// removes the socket and returns nil. Errors are those of listening.
func (s *Server) Run(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	s.once.Do(func() { close(s.ready) })
	<-ctx.Done()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.Stop()
	s.wg.Wait()
	return nil
}

// Stop closes the socket and every connection, as a node that stops: the path
// is gone afterwards. Start brings it back with a new inode.
func (s *Server) Stop() {
	s.mu.Lock()
	l := s.listener
	s.listener = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.Close() // it also removes the socket; there is nothing to flush
	}
	s.Disconnect()
}

// Start listens again after Stop.
func (s *Server) Start() error { return s.listen() }

// Disconnect closes every connection; clients may connect again at once.
func (s *Server) Disconnect() {
	s.mu.Lock()
	var waits []chan struct{}
	for c := range s.conns {
		c.close(errScripted)
		waits = append(waits, c.gone)
	}
	s.mu.Unlock()
	for _, w := range waits {
		<-w
	}
}

// Clients returns the number of open connections.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// listen makes the socket, replacing a stale one.
func (s *Server) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.stopped {
		return errors.New("devnode: already listening, or stopped for good")
	}
	if err := removeStale(s.cfg.Socket); err != nil {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.cfg.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("devnode: listen: %w", err)
	}
	// Between creation and this call the mode is that of the umask; nothing of
	// value is served before a handshake, and a client of another user that
	// slips in sees a public chain.
	if err := os.Chmod(s.cfg.Socket, 0o600); err != nil {
		_ = l.Close()
		return fmt.Errorf("devnode: socket mode: %w", err)
	}
	s.listener = l
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// removeStale removes a socket that nobody listens on any more.
func removeStale(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("devnode: socket: %w", err)
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("devnode: %s exists and is not a socket: it is left alone", path)
	}
	if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path); err == nil {
		_ = c.Close()
		return fmt.Errorf("devnode: %s: %w", path, ErrSocketInUse)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("devnode: stale socket: %w", err)
	}
	return nil
}

func (s *Server) accept(l *net.UnixListener) {
	for {
		nc, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("accept failed", "error", err)
			time.Sleep(10 * time.Millisecond) // out of descriptors: others may be freed
			continue
		}
		s.mu.Lock()
		if s.listener != l {
			s.mu.Unlock()
			_ = nc.Close()
			continue
		}
		s.nextID++
		c := &conn{id: s.nextID, net: nc, srv: s, start: time.Now(),
			done: make(chan struct{}), gone: make(chan struct{})}
		s.conns[c] = struct{}{}
		s.wg.Go(func() { s.serve(c) })
		s.mu.Unlock()
	}
}

// serve runs one connection to its end.
func (s *Server) serve(c *conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		close(c.gone)
	}()
	streams := map[uint16]*stream{
		ProtocolHandshake:    newStream(c.done),
		ProtocolChainSync:    newStream(c.done),
		ProtocolStateQuery:   newStream(c.done),
		ProtocolTxSubmission: newStream(c.done),
		ProtocolTxMonitor:    newStream(c.done),
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.close(c.readLoop(streams)) })
	version, err := c.handshake(streams[ProtocolHandshake])
	if err == nil {
		s.log.Debug("client connected", "client", c.id, "version", version)
		c.version = version
		for _, p := range []interface{ run() error }{
			&stateQuery{c: c, in: streams[ProtocolStateQuery]},
			&txSubmission{c: c, in: streams[ProtocolTxSubmission]},
			&txMonitor{c: c, in: streams[ProtocolTxMonitor]},
		} {
			wg.Go(func() {
				if err := p.run(); err != nil {
					c.close(err)
				}
			})
		}
		err = (&chainSync{c: c, in: streams[ProtocolChainSync]}).run()
		if err == nil { // the client is done with chain-sync and may close when it likes
			<-c.done
			err = c.cause
		}
	}
	c.close(err)
	wg.Wait()
	switch {
	case errors.Is(c.cause, ErrProtocol), errors.Is(c.cause, ErrNoAnswer), errors.Is(c.cause, ErrNoLedger):
		s.log.Warn("client dropped", "client", c.id, "error", c.cause)
	case errors.Is(c.cause, io.EOF), errors.Is(c.cause, errScripted), errors.Is(c.cause, errRefused):
		s.log.Debug("client gone", "client", c.id, "cause", c.cause)
	default:
		s.log.Info("client gone", "client", c.id, "cause", c.cause)
	}
}

// errRefused ends a connection whose handshake was answered but not accepted.
var errRefused = errors.New("handshake refused")

// handshake answers one proposal.
func (c *conn) handshake(in *stream) (uint16, error) {
	msg, err := in.wait()
	if err != nil {
		return 0, err
	}
	b := c.srv.behaviour()
	if b.MuteHandshake {
		<-c.done
		return 0, errClosed
	}
	if len(msg) > maxHandshake {
		return 0, fmt.Errorf("%w: handshake of %d bytes", ErrProtocol, len(msg))
	}
	proposals, err := parseProposals(msg)
	if err != nil {
		return 0, err
	}
	versions, magic := c.srv.cfg.Versions, c.srv.cfg.Magic
	if b.Versions != nil {
		versions = b.Versions
	}
	if b.Magic != nil {
		magic = *b.Magic
	}
	reply, version, ok := negotiate(proposals, versions, magic)
	if b.Handshake != nil {
		reply = b.Handshake(reply)
	}
	if err := c.send(ProtocolHandshake, reply, b.HandshakeSegments); err != nil {
		return 0, err
	}
	if !ok {
		return 0, errRefused
	}
	return version, nil
}
