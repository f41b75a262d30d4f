package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// cursorFile keeps where a stream has come to. What is in the file is always a
// whole cursor: it is replaced by renaming. It ends with a newline only if its tail
// ended in order, so that nothing is out that the cursor does not know of.
type cursorFile struct {
	path    string
	kept    chain.Token // as it is in the file
	orderly bool        // and whether its tail ended in order
	at      time.Time   // when it was written or read; zero if there is none
}

// read reads the file, if there is one.
func (c *cursorFile) read() error {
	f, err := os.Open(c.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, chain.TokenMax+16))
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	c.kept, err = chain.ParseToken(strings.TrimSpace(string(text)))
	if err != nil {
		return coded(exitBadInput, fmt.Errorf("--cursor-file %s: %w; to begin anew, remove it", c.path, err))
	}
	c.orderly, c.at = strings.HasSuffix(string(text), "\n"), time.Now()
	return nil
}

// known tells whether there is a cursor in the file.
func (c *cursorFile) known() bool { return !c.at.IsZero() }

// keep writes a cursor, on the disk before it is in the file.
func (c *cursorFile) keep(t chain.Token, orderly bool) (err error) {
	if c.known() && t == c.kept && orderly == c.orderly {
		return nil
	}
	text := t.String()
	if orderly {
		text += "\n"
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	c.kept, c.orderly, c.at = t, orderly, time.Now()
	return nil
}
