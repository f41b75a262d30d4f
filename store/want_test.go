//go:build unix

package store

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWantIsNoDamage opens a killed store in a process that may hardly open files,
// or have memory, or make files of any size. It opens or says what it wants, and
// never that the store is damaged; nor does it try for ever.
func TestWantIsNoDamage(t *testing.T) {
	if dir := os.Getenv("OUROTAIL_STORE_WANT"); dir != "" {
		wantChild(dir)
		return
	}
	killed, _, sc, ops := damageable(t, childSeed)
	refused := 0
	step := 1
	if testing.Short() {
		step = 3
	}
	var limits []string
	for n := 6; n <= 40; n += step {
		limits = append(limits, fmt.Sprintf("%d %d", syscall.RLIMIT_NOFILE, n))
	}
	for _, size := range []int{0, 1 << 10, 1 << 14, 1 << 16} {
		limits = append(limits, fmt.Sprintf("%d %d", syscall.RLIMIT_FSIZE, size))
	}
	for i, limit := range limits {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		copyDir(t, killed, dir)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestWantIsNoDamage$")
		cmd.Env = append(os.Environ(), "OUROTAIL_STORE_WANT="+dir, "OUROTAIL_STORE_LIMIT="+limit)
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGABRT) })
		out, err := cmd.CombinedOutput()
		timer.Stop()
		var exit *exec.ExitError
		switch {
		case err == nil:
		case errors.As(err, &exit) && exit.ExitCode() == 7:
			refused++
			if strings.Contains(string(out), "damaged") {
				t.Errorf("limit %s: %s", limit, out)
			}
		case limit[:1] == strconv.Itoa(syscall.RLIMIT_FSIZE): // a write through a map beyond the limit is a fault
		default:
			t.Errorf("limit %s: %v: %s", limit, err, out)
		}
		o := damageOptions(sc, dir)
		if openDamaged(t, "limit "+limit, childSeed, o, ops, true) {
			t.Errorf("limit %s: it is refused now", limit)
		}
	}
	if refused == 0 {
		t.Error("no limit kept a store from opening: the test tells nothing")
	}
}

// wantChild opens a store within a limit and ends with 7 if it cannot.
func wantChild(dir string) {
	var what, limit uint64
	if _, err := fmt.Sscan(os.Getenv("OUROTAIL_STORE_LIMIT"), &what, &limit); err != nil {
		panic(err)
	}
	sc := newScript(childSeed)
	if err := syscall.Setrlimit(int(what), &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
	s, err := Open(damageOptions(sc, dir))
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(7)
	}
	os.Exit(0)
}

// TestTheLockFileCanGo removes it under a store: nobody else gets in.
func TestTheLockFileCanGo(t *testing.T) {
	opts := testOptions(t)
	s := mustOpen(t, opts)
	defer s.Close()
	if err := os.Remove(filepath.Join(opts.Dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	for _, resync := range []bool{false, true} {
		opts.Resync = resync
		if _, err := Open(opts); !errors.As(err, &held) {
			t.Fatalf("resync %v: %v, want that it is held", resync, err)
		}
	}
	if _, err := Check(t.Context(), CheckOptions{Dir: opts.Dir}); !errors.As(err, &held) {
		t.Fatalf("check: %v, want that it is held", err)
	}
}
