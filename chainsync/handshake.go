package chainsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	ouroboros "github.com/blinklabs-io/gouroboros"
	"github.com/blinklabs-io/gouroboros/protocol"
)

// Handshake message tags and refusal reasons
// (handshake-node-to-client.cddl of ouroboros-network).
const (
	shakeAccept     = 1
	shakeRefuse     = 2
	shakeQueryReply = 3

	refuseVersions = 0
	refuseDecode   = 1
	refuseOther    = 2
)

// shake is the handshake's answer as far as it has come. gouroboros reads one
// segment of it and no more, so it is put together here; and since it is
// complete here, it is judged here, where the reasons can be told apart.
type shake struct {
	answer []byte
	walker walker
	done   bool
}

// handshake agrees on a version over sock, which it owns from now on: limited
// is ctx with the time limit. It returns when every goroutine it started has
// ended or belongs to the returned connection.
func handshake(limited, ctx context.Context, sock net.Conn, cfg Config) (*Conn, error) {
	c := newConn(sock, cfg)
	c.wait.Go(c.read)

	ready := make(chan error, 1)
	go func() {
		_, err := ouroboros.New(
			// The connection is wanted even if New fails, to wait for its end.
			func(node *ouroboros.Connection) { c.node = node },
			ouroboros.WithConnection(c.inbox),
			ouroboros.WithNetworkMagic(cfg.Magic),
			ouroboros.WithMuxerSegmentReadTimeout(0),
			ouroboros.WithDelayProtocolStart(true),
			ouroboros.WithLogger(slog.New(slog.DiscardHandler)),
		)
		ready <- err
	}()
	var err error
	select {
	case err = <-ready:
	case <-limited.Done():
		if ctx.Err() != nil {
			c.fail(ctx.Err())
		} else {
			c.fail(c.problem(opHandshake, ErrSilent, fmt.Errorf("no answer within %s", cfg.HandshakeTimeout),
				"the node is starting or overloaded, or this is another program's socket"))
		}
		err = <-ready
	}
	if err == nil {
		if v, _ := c.node.ProtocolVersion(); v == 0 {
			err = errors.New("no version was agreed on")
		}
	}
	if err != nil {
		c.fail(c.problem(opHandshake, ErrHandshake, err, ""))
	}
	if c.cause() != nil {
		c.wait.Wait()
		_ = closeNode(c.node)
		return nil, c.cause()
	}
	c.mu.Lock()
	c.op = "wait for the node"
	c.mu.Unlock()
	c.wait.Go(c.watch)
	return c, nil
}

// watch waits for the end of gouroboros' half. That is the end of the
// connection: the node's side is one.
func (c *Conn) watch() {
	err := errors.New("the multiplexer stopped")
	for e := range c.node.ErrorChan() {
		err = e
	}
	c.fail(c.peerProblem(fmt.Errorf("%w: %w", ErrProtocol, err)))
}

// closeNode closes gouroboros' half and waits for its goroutines.
func closeNode(node *ouroboros.Connection) error {
	err := node.Close()
	if m := node.Muxer(); m != nil {
		for range m.ErrorChan() { //nolint:revive // wait until it is closed
		}
	}
	var all []*protocol.Protocol
	if h := node.Handshake(); h != nil {
		all = append(all, h.Client.Protocol)
	}
	if p := node.LocalStateQuery(); p != nil {
		all = append(all, p.Client.Protocol)
	}
	if p := node.LocalTxMonitor(); p != nil {
		all = append(all, p.Client.Protocol)
	}
	if p := node.LocalTxSubmission(); p != nil {
		all = append(all, p.Client.Protocol)
	}
	for _, p := range all {
		p.Stop() // also marks those as done that were never started
		<-p.DoneChan()
	}
	return err
}

// offeredVersions are the node-to-client versions that gouroboros proposes,
// ascending, without bit 15.
func offeredVersions() []int {
	var out []int
	for _, v := range protocol.GetProtocolVersionsNtC() {
		out = append(out, int(v&^responderBit))
	}
	slices.Sort(out)
	return out
}

// pass deals with a piece of a segment that is not chain-sync's: left bytes of
// its payload are still to come. The first piece is empty.
func (c *Conn) pass(proto uint16, piece []byte, left int) error {
	switch proto &^ responderBit {
	case protoShake:
		return c.shakePiece(piece)
	case protoSubmit, protoQuery, protoMonitor:
		if !c.shake.done {
			return fmt.Errorf("%w: segment of protocol %d before the handshake's end", ErrProtocol, proto&^responderBit)
		}
		if piece == nil {
			piece = appendSegmentHeader(nil, c.timestamp(), proto, left)
		}
		return c.inbox.put(piece)
	}
	return fmt.Errorf("%w: segment of protocol %d, which is not node-to-client", ErrProtocol, proto&^responderBit)
}

func (c *Conn) shakePiece(piece []byte) error {
	if c.shake.done {
		return fmt.Errorf("%w: a second handshake message", ErrProtocol)
	}
	if len(c.shake.answer)+len(piece) > maxHandshake {
		return fmt.Errorf("%w: handshake message of more than %d bytes", ErrTooLarge, maxHandshake)
	}
	c.shake.answer = append(c.shake.answer, piece...)
	err := c.shake.walker.walk(c.shake.answer)
	end := c.shake.walker.off
	switch {
	case errors.Is(err, errShort):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrHandshake, err)
	case end != len(c.shake.answer):
		return fmt.Errorf("%w: %w: %d bytes after the message", ErrHandshake, ErrMalformed, len(c.shake.answer)-end)
	}
	if err := judge(c.shake.answer, c.cfg.Magic, offeredVersions()); err != nil {
		return err
	}
	c.shake.done = true
	segment := appendSegmentHeader(nil, c.timestamp(), protoShake|responderBit, len(c.shake.answer))
	err = c.inbox.put(append(segment, c.shake.answer...))
	c.shake.answer = nil
	return err
}

// judge reads the node's answer to our proposal. Nil means that it accepted
// one of the versions we offered, on our network.
func judge(b []byte, magic uint32, offered []int) error {
	d := decoder{b: b}
	items, tag := d.array("handshake message"), d.uint("handshake tag")
	switch {
	case d.err != nil:
	case tag == shakeAccept && items == 3:
		version := d.version()
		theirs := d.versionMagic(version)
		if d.err != nil {
			break
		}
		if !slices.Contains(offered, version) {
			return fmt.Errorf("%w: %w", ErrNoCommonVersion, &VersionError{Ours: offered, Theirs: []int{version}})
		}
		if theirs != uint64(magic) {
			return fmt.Errorf("%w: %w", ErrWrongNetwork, &NetworkError{Ours: magic, Theirs: uint32(theirs), Known: theirs <= 0xffffffff})
		}
		return nil
	case tag == shakeRefuse && items == 2:
		return d.refusal(magic, offered)
	case tag == shakeQueryReply:
		return fmt.Errorf("%w: %w: a list of versions that was not asked for", ErrHandshake, ErrProtocol)
	default:
		d.fail("handshake message %d with %d items", tag, items)
	}
	return fmt.Errorf("%w: %w", ErrHandshake, d.err)
}

// version reads a version number, which has bit 15 set in node-to-client.
func (d *decoder) version() int {
	v := d.uint("version")
	if d.err == nil && v&^(responderBit-1) != responderBit {
		d.fail("version %d is not one of node-to-client", v)
	}
	return int(v & (responderBit - 1))
}

// versionMagic reads version data: [magic, query] from version 15 on, the bare
// magic before.
func (d *decoder) versionMagic(version int) uint64 {
	if version < 15 {
		return d.uint("network magic")
	}
	if n := d.array("version data"); d.err == nil && n != 2 {
		d.fail("version data of %d items", n)
	}
	magic := d.uint("network magic")
	d.expect(majorOther, "query")
	return magic
}

// refusal reads why the node refused.
func (d *decoder) refusal(magic uint32, offered []int) error {
	items, reason := d.array("refusal"), d.uint("reason")
	switch {
	case d.err != nil:
	case reason == refuseVersions && items == 2:
		var theirs []int
		for range d.array("versions") {
			v := d.uint("version")
			if d.err != nil {
				break
			}
			theirs = append(theirs, int(v&(responderBit-1)))
		}
		if d.err == nil {
			slices.Sort(theirs)
			return fmt.Errorf("%w: %w", ErrNoCommonVersion, &VersionError{Ours: offered, Theirs: theirs})
		}
	case (reason == refuseDecode || reason == refuseOther) && items == 3:
		version := d.uint("version")
		text := string(d.string(majorText, "reason", maxHandshake))
		if d.err != nil {
			break
		}
		if reason == refuseOther {
			if e := wrongNetwork(text, magic); e != nil {
				return fmt.Errorf("%w: %w", ErrWrongNetwork, e)
			}
		}
		return fmt.Errorf("%w: the node refuses version %d: %q", ErrHandshake, version&(responderBit-1), text)
	default:
		d.fail("refusal %d with %d items", reason, items)
	}
	return fmt.Errorf("%w: %w", ErrHandshake, d.err)
}

// wrongNetwork tells whether a refusal's text is about the network magic. The
// node's own comes first (consensus: "version data mismatch: A /= B"); some
// servers name none.
func wrongNetwork(text string, ours uint32) *NetworkError {
	found := magicText.FindAllStringSubmatch(text, -1)
	for _, m := range found {
		if n, err := strconv.ParseUint(m[1], 10, 32); err == nil && uint32(n) != ours {
			return &NetworkError{Ours: ours, Theirs: uint32(n), Known: true, Text: text}
		}
	}
	if len(found) == 0 && strings.Contains(strings.ToLower(text), "magic") {
		return &NetworkError{Ours: ours, Text: text}
	}
	return nil
}

// magicText is how a node's refusal shows a network magic: in the words of
// Haskell, or of another node as long as it says "magic".
var magicText = regexp.MustCompile(`(?i)magic\D{0,40}?(\d+)`)
