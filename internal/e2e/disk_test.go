//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/query"
	"github.com/ourotail/ourotail/store"
)

// smallDisk mounts a disk of a size.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		// The kernel may be a moment behind the last process that had mapped its files.
		err := unix.Unmount(dir, 0)
		for tries := 0; errors.Is(err, unix.EBUSY) && tries < 200; tries++ {
			time.Sleep(100 * time.Millisecond)
			err = unix.Unmount(dir, 0)
		}
		if err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// fill takes the disk but for so many bytes, as another process would; give gives
// it back.
func fill(t *testing.T, dir string, leave int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "another-process"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 1<<20)
	for {
		n := min(free(t, dir)-leave, int64(len(piece)))
		if n <= 0 {
			return
		}
		if _, err := f.Write(piece[:n]); err != nil {
			if errors.Is(err, unix.ENOSPC) {
				return
			}
			t.Fatal(err)
		}
	}
}

func give(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "another-process")); err != nil {
		t.Fatal(err)
	}
}

// follower is a process that follows; its output is in err.
type follower struct {
	*exec.Cmd
	err bytes.Buffer
}

func startFollower(t *testing.T, n *node, how, config, data string) *follower {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{Cmd: exec.CommandContext(t.Context(), self, n.Socket(), config, data)}
	f.Env = append(os.Environ(), childEnv+"="+how)
	f.Stderr = &f.err
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	return f
}

// atOracle compares a directory with the oracle at the head that it reports.
func atOracle(t *testing.T, n *node, data, when string) {
	t.Helper()
	d, err := ourotail.OpenDir(data, nil)
	if errors.Is(err, store.ErrNoStore) {
		return // it came to nothing
	}
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	st := d.State()
	v := d.View()
	got := linesOf(t, v, query.Everything())
	v.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !st.Seeded {
		return
	}
	want, err := n.chain.Oracle().Lines(st.Head.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, when+" at "+st.Head.At().String(), got, want)
}

// TestSmallDisk: without room for the reserve nothing begins, without it a follower
// stops before it writes and says so, and with room again it goes on: to the
// oracle's set.
func TestSmallDisk(t *testing.T) {
	disk := smallDisk(t, 320<<20)
	n := generated(t, forge.Options{Seed: 31, K: 60, EpochBlocks: 40}, 100)
	data, config := filepath.Join(disk, "data"), filepath.Join(t.TempDir(), "config.json")
	if err := n.chain.Genesis().WriteConfig(filepath.Dir(config)); err != nil {
		t.Fatal(err)
	}
	const says = "free some space and start again"
	fill(t, disk, 60<<20)
	f := startFollower(t, n, "tip", config, data)
	if err := f.Wait(); err == nil || !strings.Contains(f.err.String(), says) {
		t.Errorf("without room: %v, %s", err, f.err.String())
	}
	give(t, disk)
	f = startFollower(t, n, "stay", config, data)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(data, "db", "MANIFEST")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not begin: %s", f.err.String())
		}
	}
	fill(t, disk, 20<<20)
	if err := n.chain.Extend(5); err != nil { // something to write, whenever it looks
		t.Fatal(err)
	}
	if err := f.Wait(); err == nil || !strings.Contains(f.err.String(), says) {
		t.Errorf("while following: %v, %s", err, f.err.String())
	}
	atOracle(t, n, data, "stopped")
	give(t, disk)
	f = startFollower(t, n, "tip", config, data)
	if err := f.Wait(); err != nil {
		t.Fatalf("with room again: %v, %s", err, f.err.String())
	}
	atOracle(t, n, data, "with room again")
}

// TestEndOnAFullDisk fills the disk under a follower that has nothing to do, and
// ends it; and asks a directory on a full disk. Both end with a sentence, not with
// a fault, and what was there is there.
func TestEndOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, 320<<20)
	n := generated(t, forge.Options{Seed: 32, K: 60, EpochBlocks: 40}, 300)
	data, config := filepath.Join(disk, "data"), filepath.Join(t.TempDir(), "config.json")
	if err := n.chain.Genesis().WriteConfig(filepath.Dir(config)); err != nil {
		t.Fatal(err)
	}
	f := startFollower(t, n, "tip", config, data)
	if err := f.Wait(); err != nil {
		t.Fatalf("%v, %s", err, f.err.String())
	}
	f = startFollower(t, n, "stay", config, data)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if logs, err := filepath.Glob(filepath.Join(data, "db", "*.mem")); err == nil && len(logs) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not begin: %s", f.err.String())
		}
	}
	time.Sleep(time.Second) // at the tip
	fill(t, disk, 0)
	if err := f.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = f.Wait() // if it had nothing to write it may end well
	if said := f.err.String(); strings.Contains(said, "goroutine ") || strings.Contains(said, "SIGBUS") {
		t.Errorf("it ended with a fault: %s", said)
	}
	d, err := ourotail.OpenDir(data, nil)
	if err == nil {
		err = d.Close()
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a directory on a full disk: %v", err)
	}
	give(t, disk)
	atOracle(t, n, data, "with room again")
}

// TestDiskTakenByAnother: another process fills the disk at any moment, so that
// writing meets its end. However the follower ends, and it does end, it leaves what
// a kill leaves.
func TestDiskTakenByAnother(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 4
	}
	disk := smallDisk(t, 192<<20)
	n := generated(t, forge.Options{Seed: 32, K: 60, EpochBlocks: 40}, 400)
	data, config := filepath.Join(disk, "data"), filepath.Join(t.TempDir(), "config.json")
	if err := n.chain.Genesis().WriteConfig(filepath.Dir(config)); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(32, 32))
	ended := map[string]int{}
	longest := 100 * time.Millisecond
	for round := range rounds {
		f := startFollower(t, n, "small", config, data)
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			time.Sleep(time.Duration(r.Int64N(int64(longest))))
			fill(t, disk, 0)
		}()
		err := f.Wait()
		<-taken
		text := f.err.String()
		switch {
		case err == nil:
			ended["at the tip"]++
			longest = longest * 2 / 3
		case strings.Contains(text, "free some space"):
			ended["stopped"]++
		case strings.Contains(text, "SIGBUS"):
			ended["fault"]++
		case strings.Contains(text, "no space left"):
			ended["no space"]++
		default:
			t.Errorf("round %d: it ended with %v: %s", round, err, text)
		}
		if err != nil {
			longest = min(longest*4/3, 2*time.Second)
		}
		give(t, disk)
		rep, err := ourotail.Check(t.Context(), ourotail.CheckConfig{DataDir: data})
		switch {
		case errors.Is(err, store.ErrNoStore):
		case err != nil:
			t.Fatal(err)
		case len(rep.Findings) > 0:
			t.Errorf("round %d, %s: check finds %+v", round, text, rep.Findings)
		}
		atOracle(t, n, data, fmt.Sprintf("round %d", round))
		depth := 1 + r.IntN(50)
		if err := n.chain.Fork(depth, depth+60); err != nil {
			t.Fatal(err)
		}
	}
	f := startFollower(t, n, "small", config, data)
	if err := f.Wait(); err != nil {
		t.Fatalf("in the end: %v, %s", err, f.err.String())
	}
	atOracle(t, n, data, "in the end")
	t.Logf("%v", ended)
}
