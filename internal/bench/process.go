package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// result is what a child says of its run, and what was seen of it from outside.
type result struct {
	Units  int      `json:"units"`             // blocks, as a rule
	Allocs float64  `json:"allocs"`            // heap allocations in all; negative if the child cannot tell
	Part   int64    `json:"part,omitempty"`    // CPU of what is measured, in ns, where that is not the whole process
	More   []figure `json:"figures,omitempty"` // what else was measured

	counted bool // the child has counted its allocations itself

	CPU  time.Duration `json:"cpu"`  // user and system
	Sys  time.Duration `json:"sys"`  // system alone
	Wall time.Duration `json:"wall"` // from start to end
	Anon int64         `json:"anon"` // peak of anonymous memory (RssAnon), in bytes
	Disk int64         `json:"disk"` // written, in bytes
}

// figure is one number that is not of every row.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// per is the CPU time of one unit, in nanoseconds.
func (r result) per() float64 {
	if r.Part > 0 {
		return float64(r.Part) / float64(r.Units)
	}
	return float64(r.CPU) / float64(r.Units)
}

// figure returns a figure by name, 0 if there is none.
func (r result) figure(name string) float64 {
	for _, f := range r.More {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// start runs this program as a child.
func start(ctx context.Context, j job) (*exec.Cmd, error) {
	arg, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "child", string(arg))
	cmd.Stderr = os.Stderr
	return cmd, nil
}

var errKilled = errors.New("the process was killed")

// observe runs a command to its end and looks at it from outside. Its last line
// of output is its result, if it prints one.
func observe(cmd *exec.Cmd) (r result, err error) {
	var out bytes.Buffer
	cmd.Stdout = &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	pid := cmd.Process.Pid
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, procNumber(pid, "status", "RssAnon:")<<10)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	// Once it is dead, and before it is buried, its accounts are complete.
	for {
		if err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	r.Wall = time.Since(began)
	disk := procNumber(pid, "io", "write_bytes:")
	close(stop)
	anon := <-peak
	werr := cmd.Wait()
	if err != nil {
		return r, err
	}
	var exit *exec.ExitError
	if killed := errors.As(werr, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; killed {
		err = errKilled
	} else if werr != nil {
		return r, fmt.Errorf("%s: %w", strings.Join(cmd.Args[1:], " "), werr)
	}
	wall := r.Wall
	if lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")); bytes.HasPrefix(lines[len(lines)-1], []byte("{")) {
		if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
			return r, fmt.Errorf("%s said %q: %w", cmd.Args, out.Bytes(), err)
		}
	}
	r.Wall, r.Anon, r.Disk = wall, anon, disk
	r.Sys = cmd.ProcessState.SystemTime()
	r.CPU = cmd.ProcessState.UserTime() + r.Sys
	return r, err
}

// procNumber reads a number of a process, 0 where it cannot be had.
func procNumber(pid int, file, key string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), key)
	if f := strings.Fields(rest); ok && len(f) > 0 {
		n, _ := strconv.ParseInt(f[0], 10, 64) // the kernel prints numbers
		return n
	}
	return 0
}
