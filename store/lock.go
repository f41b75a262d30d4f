package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// lockFile is held for as long as the store is open. The kernel drops the lock
// with the process, so that one left behind by a kill stands in nobody's way.
// Its text says who holds it.
const lockFile = "lock"

func hold(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockFile)
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, holder(dir)
	}
	note := fmt.Sprintf("%d\n%s\n", os.Getpid(), strings.Join(os.Args, " "))
	if err := os.WriteFile(path, []byte(note), 0o600); err != nil {
		_ = l.Unlock()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return l, nil
}

// holder reads the note of whoever holds the lock.
func holder(dir string) *HeldError {
	held := &HeldError{Dir: dir}
	note, err := os.ReadFile(filepath.Join(dir, lockFile))
	if err != nil {
		return held // it is held all the same
	}
	pid, command, _ := strings.Cut(string(note), "\n")
	if held.PID, err = strconv.Atoi(pid); err == nil {
		held.Command = strings.TrimSpace(command)
	}
	return held
}
