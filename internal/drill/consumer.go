package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// consumer is the process under test.
type consumer struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	answer answer
	said   lastLines
	done   chan struct{}
	err    error // of its end; valid once done is closed
}

// startConsumer starts the command, in a process group of its own so that no
// child of a shell outlives it.
func startConsumer(ctx context.Context, argv, env []string, log *os.File) (*consumer, error) {
	c := &consumer{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), done: make(chan struct{})}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Cancel = func() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }
	c.cmd.WaitDelay = 2 * time.Second
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.answer, &c.said
	c.said.file = log
	var err error
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the consumer: %w", err)
	}
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// finish ends the consumer's input and returns its answer.
func (c *consumer) finish(ctx context.Context, patience time.Duration) ([]byte, error) {
	_ = c.input.Close() // it has ended already: Wait says how
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		c.kill()
		return nil, c.with(fmt.Errorf("it did not end within %v of the end of its input", patience))
	}
	if c.answer.over {
		return nil, c.with(errOver)
	}
	if c.err != nil {
		return nil, c.with(fmt.Errorf("it ended with %w instead of exit status 0", c.err))
	}
	return c.answer.text.Bytes(), nil
}

// kill ends the consumer if it has not ended, and waits for it.
func (c *consumer) kill() {
	select {
	case <-c.done: // its number may be another's by now
		return
	default:
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // it ends just now
	<-c.done
}

// with adds the consumer's last words to an error.
func (c *consumer) with(err error) error {
	if text := c.said.String(); text != "" {
		return fmt.Errorf("%w; it said:\n%s", err, text)
	}
	return err
}

// early says how a consumer ended that should still be reading.
func (c *consumer) early() error {
	<-c.done
	if c.answer.over {
		return c.with(errOver)
	}
	err := c.err
	if err == nil {
		err = errors.New("exit status 0")
	}
	return c.with(fmt.Errorf("it ended before its input did, with %w", err))
}

// maxAnswer is far more than a line for each address of a day's chain takes.
const maxAnswer = 16 << 20

var errOver = fmt.Errorf("it printed more than %d MiB; the answer is one line for each address, when the input has ended", maxAnswer>>20)

// answer keeps what a consumer prints. One that prints without end is cut off by
// the error, which closes its output.
type answer struct {
	text bytes.Buffer // not embedded: it would read without a bound
	over bool         // valid once the consumer has ended
}

func (a *answer) Write(p []byte) (int, error) {
	if a.text.Len()+len(p) > maxAnswer {
		a.over = true
		return 0, errOver
	}
	return a.text.Write(p)
}
