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

// locks are what is held: the file, and the directory itself, so that whoever
// removes the file does not let a second process in.
type locks []*flock.Flock

// Unlock gives them back.
func (l locks) Unlock() error {
	var errs []error
	for _, one := range l {
		errs = append(errs, one.Unlock())
	}
	return errors.Join(errs...)
}

func hold(dir string) (_ locks, err error) {
	held, err := holdDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = held.Unlock()
		}
	}()
	path := filepath.Join(dir, lockFile)
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, holder(dir)
	}
	held = append(held, l)
	if err := os.WriteFile(path, note(), 0o600); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return held, nil
}

// holdDir locks the directory. Where a file system cannot lock directories the
// lock file must do.
func holdDir(dir string) (locks, error) {
	l := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	ok, err := l.TryLock()
	switch {
	case err != nil:
		return nil, nil //nolint:nilerr // see above
	case !ok:
		return nil, holder(dir)
	}
	return locks{l}, nil
}

func note() []byte { return fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), strings.Join(os.Args, " ")) }

// holdToRead holds a directory that may be on a medium that nobody can write to:
// then the lock is that of its file, if it has one.
func holdToRead(dir string) (_ locks, err error) {
	held, err := holdDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = held.Unlock()
		}
	}()
	path := filepath.Join(dir, lockFile)
	for _, flag := range []int{os.O_RDWR, os.O_RDONLY} {
		l := flock.New(path, flock.SetFlag(flag))
		ok, err := l.TryLock()
		switch {
		case err == nil && ok:
			if flag == os.O_RDWR {
				_ = os.WriteFile(path, note(), 0o600) // it only helps whoever finds it held
			}
			return append(held, l), nil
		case err == nil:
			return nil, holder(dir)
		case errors.Is(err, fs.ErrNotExist):
			return held, nil
		case flag == os.O_RDONLY:
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
	return held, nil
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
