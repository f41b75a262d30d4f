package chainsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/ourotail/ourotail/chain"
)

// Dial connects to a node and agrees on a protocol version with it, within
// Config.HandshakeTimeout and while ctx lasts; ctx has no bearing on the
// connection that is returned. Its errors are *Error or those of ctx.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	problem := func(kind, cause error, hint string) error {
		return &Error{Op: "connect", Path: cfg.SocketPath, Kind: kind, Cause: cause, Hint: hint}
	}
	if cfg.Magic == 0 {
		return nil, problem(ErrUsage, errors.New("network magic 0"), "name the network")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, cfg.HandshakeTimeout)
	defer cancel()
	var d net.Dialer
	sock, err := d.DialContext(limited, "unix", cfg.SocketPath)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		kind, hint := dialProblem(cfg.SocketPath, err)
		return nil, problem(kind, systemError(err), hint)
	}
	return handshake(limited, ctx, sock, cfg)
}

// dialProblem sorts what the system said.
func dialProblem(path string, err error) (kind error, hint string) {
	switch {
	case path == "":
		return ErrNoSocket, "name the node's socket"
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoSocket, "the node makes its socket some time after it starts: is it running, and with this --socket-path?"
	case errors.Is(err, syscall.ENOTDIR):
		return ErrNoSocket, "a part of the path is not a directory"
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTSOCK):
		if info, e := os.Stat(path); e == nil && info.Mode()&fs.ModeSocket == 0 {
			return ErrNotSocket, fmt.Sprintf("it is a %s; the node's socket is often called node.socket", fileKind(info.Mode()))
		}
		return ErrRefused, "the socket is there but nobody listens: the node has stopped, or has not come far enough in starting"
	case errors.Is(err, fs.ErrPermission):
		return ErrPermission, fmt.Sprintf("user id %d may not write to it%s; run as the node's user or join its group", os.Getuid(), owner(path))
	case errors.Is(err, syscall.EINVAL) || len(path) > 107:
		return ErrConnect, "a socket's path has at most 107 bytes; use a shorter one or a symbolic link"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.EAGAIN):
		return ErrSilent, "too many clients wait for the node to accept them"
	}
	return ErrConnect, ""
}

// systemError is what the system said, without the path and the call.
func systemError(err error) error {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno
	}
	return err
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "regular file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	}
	return "file of another kind"
}

// owner tells whose the file is and its mode, if that can be read.
func owner(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return " (nor look at it)"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (owner %d, group %d, mode %04o)", st.Uid, st.Gid, info.Mode().Perm())
}

// Probe asks a node for its tip on a connection of its own: a sign of life
// that a quiet chain gives and a frozen node does not. It ends by
// Config.HandshakeTimeout plus Config.AnswerTimeout or with ctx.
func Probe(ctx context.Context, cfg Config) (chain.Tip, error) {
	c, err := Dial(ctx, cfg)
	if err != nil {
		return chain.Tip{}, err
	}
	defer c.Close()
	_, _, tip, err := c.Intersect(ctx, nil)
	return tip, err
}
