package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ourotail/ourotail/chain"
)

// cursorFile keeps where a stream has come to. What is in the file is always a whole
// line: it is replaced by renaming. Behind the cursor stands of which lines it is one.
// It ends with a newline only if its tail ended in order, so that nothing is out that
// the cursor does not know of. An empty file holds no cursor yet; one with begunMark in
// the place of the cursor neither, but lines are out: of what comes before the first
// cursor, such as the genesis outputs.
type cursorFile struct {
	path    string
	asked   string      // which lines are wanted, see tailRequest.asked
	kept    chain.Token // as it is in the file
	orderly bool        // and whether its tail ended in order
	begun   bool        // lines are out, perhaps, and no cursor is in the file
	at      time.Time   // when it was written or read; zero if there is none
	lock    *os.File    // what is at path, locked, so that no other tail keeps a cursor there
}

// open locks the file, which is made if there is none, and reads it.
func (c *cursorFile) open() error {
	if err := c.hold(); err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(c.lock, chain.TokenMax+256))
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	cursor, asked, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	switch c.begun = cursor == begunMark; {
	case cursor == "":
		return nil
	case !c.begun:
		c.kept, err = chain.ParseToken(cursor)
	}
	if err != nil {
		return coded(exitBadInput, fmt.Errorf("--cursor-file %s: %w; to begin anew, remove it", c.path, err))
	}
	if asked != "" && asked != c.asked { // a file of before it said so has none
		return coded(exitCursor, fmt.Errorf("--cursor-file %s was kept for other lines: for %s, wanted is %s\n  hint: give each its own file; to go on from there all the same, take everything behind the cursor out: sed -i 's/ .*//' %[1]s; to begin anew, remove it",
			c.path, asked, c.asked))
	}
	if !c.begun {
		c.orderly, c.at = strings.HasSuffix(string(text), "\n"), time.Now()
	}
	return nil
}

const begunMark = "-"

// begin says in the file that lines go out, before there is a cursor.
func (c *cursorFile) begin() error {
	if c.known() || c.begun {
		return nil
	}
	c.begun = true
	return c.put(begunMark, false)
}

// hold locks what is at the path: not what another tail has replaced meanwhile.
func (c *cursorFile) hold() error {
	for {
		f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := lockFile(f); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return coded(exitHeld, fmt.Errorf("another tail keeps its cursor in %s: give each its own file, or end the other", c.path))
			}
			return fmt.Errorf("locking %s: %w", c.path, err)
		}
		mine, err := f.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(c.path); err == nil && os.SameFile(mine, there) {
				c.lock = f
				return nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
}

// lockFile takes a lock that the kernel drops with the process.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// close lets another tail keep its cursor in the file.
func (c *cursorFile) close() {
	if c != nil && c.lock != nil {
		c.lock.Close()
	}
}

// known tells whether there is a cursor in the file.
func (c *cursorFile) known() bool { return !c.at.IsZero() }

// keep writes a cursor, on the disk before it is in the file.
func (c *cursorFile) keep(t chain.Token, orderly bool) error {
	if c.known() && t == c.kept && orderly == c.orderly {
		return nil
	}
	if err := c.put(t.String(), orderly); err != nil {
		return err
	}
	c.kept, c.orderly, c.begun, c.at = t, orderly, false, time.Now()
	return nil
}

// put replaces what is in the file.
func (c *cursorFile) put(text string, orderly bool) error {
	if c.asked != "" {
		text += " " + c.asked
	}
	if orderly {
		text += "\n"
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), lockFile(tmp)) // locked before it is there
	if err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", errors.Join(err, tmp.Close(), os.Remove(tmp.Name())))
	}
	c.close()
	c.lock = tmp
	return nil
}
