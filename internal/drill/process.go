package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// tailProcess is a running Tail and the goroutine that passes its lines on.
type tailProcess struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  lastLines
	done  chan struct{} // closed when the process has ended and its lines are passed on
	err   error         // valid then
}

// startTail starts the process and begins to pass on its lines.
func startTail(ctx context.Context, argv []string, spec Spec, to *feed) (*tailProcess, error) {
	arg, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	argv = append(argv[:len(argv):len(argv)], string(arg))
	t := &tailProcess{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), done: make(chan struct{})}
	t.cmd.Stderr = &t.said
	if t.stdin, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	lines, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting ourotail: %w", err)
	}
	go func() {
		defer close(t.done)
		err := to.pass(lines)
		if err != nil { // the consumer does not read: let the process end
			_ = t.cmd.Process.Kill()
		}
		t.err = errors.Join(err, t.cmd.Wait())
	}()
	return t, nil
}

// kill sends SIGKILL.
func (t *tailProcess) kill() {
	_ = t.cmd.Process.Kill() // it has ended already
}

// end lets the process end by itself.
func (t *tailProcess) end() {
	_ = t.stdin.Close() // it has ended already
}

// failure says why the process ended, in its own last words.
func (t *tailProcess) failure() error {
	if text := t.said.String(); text != "" && t.err != nil {
		return fmt.Errorf("ourotail ended: %w; it said:\n%s", t.err, text)
	}
	if t.err == nil {
		return errors.New("ourotail ended by itself")
	}
	return fmt.Errorf("ourotail ended: %w", t.err)
}

// lastLines keeps the end of what a process says, and all of it in a file if
// there is one.
type lastLines struct {
	mu   sync.Mutex
	text []byte
	file *os.File
}

const lastBytes = 2000

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if extra := len(l.text) - lastBytes; extra > lastBytes {
		l.text = append(l.text[:0], l.text[extra:]...)
	}
	if l.file != nil {
		return l.file.Write(p)
	}
	return len(p), nil
}

// String returns the last whole lines.
func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text
	if extra := len(text) - lastBytes; extra > 0 {
		text = text[extra:]
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:]
		}
	}
	return strings.TrimSpace(string(text))
}
