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
// whole cursor: it is replaced by renaming.
type cursorFile struct {
	path string
	kept chain.Token // as it is in the file
	at   time.Time   // when it was written; zero if never
}

// readCursorFile returns the cursor in a file, nil if there is no such file.
func readCursorFile(path string) (*chain.Token, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, chain.TokenMax+16))
	if err != nil {
		return nil, err
	}
	t, err := chain.ParseToken(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, coded(exitBadInput, fmt.Errorf("--cursor-file %s: %w; to begin anew, remove it", path, err))
	}
	return &t, nil
}

// keep writes a cursor, on the disk before it is in the file.
func (c *cursorFile) keep(t chain.Token) (err error) {
	if !c.at.IsZero() && t == c.kept {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", err)
	}
	_, err = tmp.WriteString(t.String() + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		return fmt.Errorf("--cursor-file: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	c.kept, c.at = t, time.Now()
	return nil
}
