package chainsync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wantError checks kind, text and what a retry is worth.
func wantError(t *testing.T, err, kind error, retry bool, parts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, kind) || !errors.Is(e.Kind, kind) {
		t.Fatalf("got %v (%T), want %v", err, err, kind)
	}
	if Retryable(err) != retry {
		t.Errorf("Retryable(%v) = %v", err, !retry)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

func TestDialPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	for _, v := range []struct {
		name, path string
		kind       error
		retry      bool
		says       string
	}{
		{"missing", filepath.Join(dir, "none"), ErrNoSocket, true, filepath.Join(dir, "none")},
		{"missing directory", filepath.Join(dir, "none", "s"), ErrNoSocket, true, "is it running"},
		{"empty", "", ErrNoSocket, true, "name the node's socket"},
		{"below a file", filepath.Join(file, "s"), ErrNoSocket, true, "not a directory"},
		{"stale socket", stale, ErrRefused, true, "nobody listens"},
		{"regular file", file, ErrNotSocket, false, "regular file"},
		{"directory", dir, ErrNotSocket, false, "directory"},
		{"path too long", filepath.Join(dir, strings.Repeat("x", 120)), ErrConnect, true, "107"},
	} {
		t.Run(v.name, func(t *testing.T) {
			_, err := Dial(testContext(t), testConfig(v.path))
			wantError(t, err, v.kind, v.retry, "connect "+v.path, v.says)
		})
	}
	if _, err := Dial(testContext(t), Config{SocketPath: stale}); !errors.Is(err, ErrUsage) {
		t.Errorf("magic 0: %v", err)
	}
}

func TestDialPermission(t *testing.T) {
	path := serve(t, func(p *peer) error { return p.hold() })
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	kind, hint := dialProblem(path, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})
	if !errors.Is(kind, ErrPermission) || !strings.Contains(hint, fmt.Sprintf("user id %d", os.Getuid())) || !strings.Contains(hint, "mode 0000") {
		t.Errorf("%v: %s", kind, hint)
	}
	if os.Getuid() == 0 {
		t.Skip("root may use any socket; the rest needs another user")
	}
	_, err := Dial(testContext(t), testConfig(path))
	wantError(t, err, ErrPermission, false, path, "user id")
}

// TestDialBacklog: a node that has stopped accepting does not hang us.
func TestDialBacklog(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	path := filepath.Join(t.TempDir(), "s")
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			break
		}
		held = append(held, c)
	}
	_, err = Dial(testContext(t), testConfig(path))
	wantError(t, err, ErrSilent, true, "accept")
	for _, c := range held {
		c.Close()
	}
}

// refusal is [2, [reason...]].
func refusal(parts ...any) []byte { return append([]byte{0x82, 2}, cat(parts...)...) }

func text(s string) []byte { return append([]byte{0x78, byte(len(s))}, s...) }

const haskellMismatch = "version data mismatch: NodeToClientVersionData {networkMagic = NetworkMagic {unNetworkMagic = 2}, query = False} /= NodeToClientVersionData {networkMagic = NetworkMagic {unNetworkMagic = 42}, query = False}"

func TestHandshakeAnswers(t *testing.T) {
	v20 := []byte{0x19, 0x80, 20}
	for _, v := range []struct {
		name  string
		in    []byte
		kind  error
		retry bool
		says  []string
	}{
		{"wrong network, refused", refusal(0x83, 2, v20, text(haskellMismatch)), ErrWrongNetwork, false, []string{"magic 42", "has 2", "--network|network"}},
		{"wrong network, refused without numbers", refusal(0x83, 2, v20, text("network magic mismatch")), ErrWrongNetwork, false, []string{"magic 42", "network magic mismatch"}},
		{"wrong network, accepted", acceptance(77), ErrWrongNetwork, false, []string{"magic 42", "has 77"}},
		{"newer versions only", refusal(0x82, 0, 0x82, 0x19, 0x80, 23, 0x19, 0x80, 22), ErrNoCommonVersion, false, []string{"9-21", "22-23"}},
		{"no version at all", refusal(0x82, 0, 0x80), ErrNoCommonVersion, false, []string{"none"}},
		{"version not offered", cat(0x83, 1, 0x19, 0x80, 22, 0x82, 0x18, 42, 0xf4), ErrNoCommonVersion, false, []string{"9-21", "22"}},
		{"version of node-to-node", cat(0x83, 1, 14, 0x84, 0x18, 42, 0xf4, 0, 0xf4), ErrHandshake, false, []string{"version 14"}},
		{"version without bit 15", cat(0x83, 1, 20, 0x82, 0x18, 42, 0xf4), ErrHandshake, false, []string{"version 20"}},
		{"query reply unasked", cat(0x82, 3, 0xa1, v20, 0x82, 0x18, 42, 0xf4), ErrHandshake, false, []string{"not asked for"}},
		{"refused for another reason", refusal(0x83, 2, v20, text("go away")), ErrHandshake, false, []string{"go away", "version 20"}},
		{"refused, same magic", refusal(0x83, 2, v20, text(strings.ReplaceAll(haskellMismatch, "= 2}", "= 42}"))), ErrHandshake, false, []string{"version data mismatch"}},
		{"could not decode us", refusal(0x83, 1, v20, text("bad magic")), ErrHandshake, false, []string{"bad magic"}},
		{"unknown refusal", refusal(0x82, 3, 0), ErrHandshake, false, nil},
		{"refusal of wrong shape", refusal(0x83, 0, 0, 0), ErrHandshake, false, nil},
		{"refusal that is no list", refusal(5), ErrHandshake, false, nil},
		{"our own proposal back", cat(0x82, 0, 0xa1, v20, 0x82, 0x18, 42, 0xf4), ErrHandshake, false, nil},
		{"not an array", cat(0x05), ErrHandshake, false, nil},
		{"indefinite", cat(0x9f, 1, 0xff), ErrHandshake, false, nil},
		{"bytes after it", cat(acceptance(42), 0), ErrHandshake, false, []string{"1 bytes after"}},
		{"deep", bytes.Repeat([]byte{0x81}, 5000), ErrHandshake, false, []string{"nested"}},
		{"too long", cat(0x99, 0x1f, 0x40, bytes.Repeat([]byte{0x41, 0}, 8000)), ErrTooLarge, false, nil},
		{"string of 4 GB", cat(0x81, 0x5a, 0xff, 0xff, 0xff, 0xff), ErrHandshake, false, nil},
		{"map of 2^63", cat(0xbb, 0x80, make([]byte, 7)), ErrHandshake, false, nil},
	} {
		t.Run(v.name, func(t *testing.T) {
			cuts := []int{0, 1, 5}
			if v.name == "bytes after it" {
				cuts = cuts[:1] // in another segment they are another message
			}
			for _, cut := range cuts {
				path := serve(t, func(p *peer) error {
					if _, err := p.proposal(); err != nil {
						return err
					}
					p.cut = cut
					_ = p.send(0, v.in)
					return p.hold()
				})
				_, err := Dial(testContext(t), testConfig(path))
				wantError(t, err, v.kind, v.retry, "handshake "+path)
				for _, s := range v.says {
					if !slices.ContainsFunc(strings.Split(s, "|"), func(s string) bool { return strings.Contains(err.Error(), s) }) {
						t.Errorf("%q does not say %q", err, s)
					}
				}
			}
		})
	}
}

// TestHandshakeDetails: programs find both sides in the error.
func TestHandshakeDetails(t *testing.T) {
	var n *NetworkError
	if err := judge(acceptance(77), 42, offeredVersions()); !errors.As(err, &n) || n.Ours != 42 || n.Theirs != 77 || !n.Known {
		t.Errorf("%v: %+v", err, n)
	}
	var v *VersionError
	err := judge(refusal(0x82, 0, 0x82, 0x19, 0x80, 23, 0x19, 0x80, 22), 42, offeredVersions())
	if !errors.As(err, &v) || !slices.Equal(v.Theirs, []int{22, 23}) || !slices.Contains(v.Ours, 16) {
		t.Errorf("%v: %+v", err, v)
	}
}

// TestHandshakeSplit: an answer in two segments, cut anywhere, is an answer.
func TestHandshakeSplit(t *testing.T) {
	for cut := 1; cut < len(acceptance(testMagic)); cut++ {
		path := serve(t, func(p *peer) error {
			if _, err := p.proposal(); err != nil {
				return err
			}
			p.cut = cut
			if err := p.send(0, acceptance(testMagic)); err != nil {
				return err
			}
			return p.hold()
		})
		c, err := Dial(testContext(t), testConfig(path))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if c.Version() != 20 {
			t.Errorf("version %d", c.Version())
		}
		c.Close()
	}
}

// TestProposal checks what is offered: a definite map, ascending, with the
// node's versions 16 to 21, in one segment (the node's codec insists on that).
func TestProposal(t *testing.T) {
	var got []byte
	path := serve(t, func(p *peer) (err error) {
		if got, err = p.proposal(); err != nil {
			return err
		}
		_ = p.send(0, acceptance(testMagic))
		return p.hold()
	})
	c, err := Dial(testContext(t), testConfig(path))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	d := decoder{b: got}
	d.array("message")
	d.uint("tag")
	last := 0
	var all []int
	for range d.expect(majorMap, "versions") {
		v := d.version()
		if v <= last {
			t.Errorf("version %d after %d", v, last)
		}
		if magic := d.versionMagic(v); magic != testMagic {
			t.Errorf("version %d: magic %d", v, magic)
		}
		last, all = v, append(all, v)
	}
	if d.err != nil || d.off != len(got) {
		t.Fatalf("%v after %d of %d bytes: %x", d.err, d.off, len(got), got)
	}
	for v := 16; v <= 21; v++ {
		if !slices.Contains(all, v) {
			t.Errorf("version %d is not offered", v)
		}
	}
	if !slices.Equal(all, offeredVersions()) {
		t.Errorf("offered %v, errors would say %v", all, offeredVersions())
	}
}

func TestHandshakeEnds(t *testing.T) {
	for _, v := range []struct {
		name   string
		script func(*peer) error
		kind   error
		retry  bool
	}{
		{"closed at once", func(*peer) error { return nil }, ErrDisconnected, true},
		{"closed after the proposal", func(p *peer) error { _, err := p.proposal(); return err }, ErrDisconnected, true},
		{"closed in a header", func(p *peer) error {
			_, err := p.proposal()
			_, _ = p.conn.Write([]byte{0, 0, 0, 0, 0x80})
			return err
		}, ErrDisconnected, true},
		{"closed in the answer", func(p *peer) error {
			_, err := p.proposal()
			_ = p.send(0, acceptance(testMagic)[:4])
			return err
		}, ErrDisconnected, true},
		{"silent", (*peer).hold, ErrSilent, true},
		{"silent after half an answer", func(p *peer) error {
			_, err := p.proposal()
			_ = p.send(0, acceptance(testMagic)[:4])
			_ = p.hold()
			return err
		}, ErrSilent, true},
		{"empty segments only", func(p *peer) error {
			for p.send(0, nil) == nil {
			}
			return nil
		}, ErrSilent, true},
		{"chain-sync before it", func(p *peer) error { _ = p.send(5, awaitReply); return p.hold() }, ErrProtocol, false},
		{"state query before it", func(p *peer) error { _ = p.send(7, awaitReply); return p.hold() }, ErrProtocol, false},
		{"protocol 3", func(p *peer) error { _ = p.send(3, awaitReply); return p.hold() }, ErrProtocol, false},
		{"another protocol: HTTP", func(p *peer) error {
			_, _ = p.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			return p.hold()
		}, ErrProtocol, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			cfg := testConfig(serve(t, v.script))
			if errors.Is(v.kind, ErrSilent) {
				cfg.HandshakeTimeout = 100 * time.Millisecond
			}
			start := time.Now()
			_, err := Dial(testContext(t), cfg)
			wantError(t, err, v.kind, v.retry)
			if middle := strings.HasPrefix(v.name, "closed in"); middle != strings.Contains(err.Error(), "in the middle of a message") {
				t.Errorf("%v", err)
			}
			if d := time.Since(start); d > 4*time.Second {
				t.Errorf("took %v", d)
			}
			if errors.Is(v.kind, ErrProtocol) && !strings.Contains(err.Error(), "is this really a node's socket?") {
				t.Errorf("it may be no node at all, but: %v", err)
			}
		})
	}
}

func TestDialCancel(t *testing.T) {
	started := make(chan struct{})
	path := serve(t, func(p *peer) error { close(started); return p.hold() })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel() }()
	if _, err := Dial(ctx, testConfig(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Dial(ctx, testConfig(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("before it began: %v", err)
	}
}

func TestProbe(t *testing.T) {
	path := serve(t, func(p *peer) error {
		if err := p.shake(); err != nil {
			return err
		}
		points, err := p.find()
		if err == nil && !bytes.Equal(points, []byte{0x80}) {
			err = fmt.Errorf("%w: a probe offers %x", errPeer, points)
		}
		if err != nil {
			return err
		}
		return p.send(5, intersectNotFound(tipAt(12))) // and goes: its answer counts all the same
	})
	for range 50 {
		tip, err := Probe(testContext(t), testConfig(path))
		if err != nil || tip != tipAt(12) {
			t.Fatalf("%v %v", tip, err)
		}
	}
}

func TestVersionList(t *testing.T) {
	for want, in := range map[string][]int{"none": nil, "5": {5}, "5-7, 9": {9, 5, 6, 7, 7}} {
		if got := versionList(in); got != want {
			t.Errorf("%v: %q", in, got)
		}
	}
}

// FuzzHandshake feeds the judge of handshakes foreign bytes.
func FuzzHandshake(f *testing.F) {
	f.Add(acceptance(42))
	f.Add(refusal(0x83, 2, 0x19, 0x80, 20, text(haskellMismatch)))
	f.Add(refusal(0x82, 0, 0x82, 0x19, 0x80, 23, 0x19, 0x80, 22))
	f.Add(cat(0x82, 3, 0xa0))
	offered := offeredVersions()
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = new(walker).walk(b)
		if err := judge(b, 42, offered); err == nil {
			d := decoder{b: b}
			d.array("")
			d.uint("")
			if !slices.Contains(offered, d.version()) {
				t.Fatal("accepts a version that was not offered")
			}
		} else if !errors.Is(err, ErrHandshake) && !errors.Is(err, ErrWrongNetwork) && !errors.Is(err, ErrNoCommonVersion) {
			t.Fatalf("untyped error %v", err)
		}
	})
}
