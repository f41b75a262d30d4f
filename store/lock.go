package store

import (
	"errors"
	"fmt"
	"io/fs"
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
	if err := os.WriteFile(path, note(), 0o600); err != nil {
		_ = l.Unlock()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return l, nil
}

func note() []byte { return fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), strings.Join(os.Args, " ")) }

// holdToRead holds a directory that may be on a medium that nobody can write to:
// then the lock is that of its file, if it has one.
func holdToRead(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockFile)
	for _, flag := range []int{os.O_RDWR, os.O_RDONLY} {
		l := flock.New(path, flock.SetFlag(flag))
		ok, err := l.TryLock()
		switch {
		case err == nil && ok:
			if flag == os.O_RDWR {
				_ = os.WriteFile(path, note(), 0o600) // it only helps whoever finds it held
			}
			return l, nil
		case err == nil:
			return nil, holder(dir)
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case flag == os.O_RDONLY:
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return nil, nil
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
