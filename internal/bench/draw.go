package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// draw has the plots made, by a module of its own: what it requires must not
// become ours.
func draw(ctx context.Context, raw, dir string) error {
	raw, err := filepath.Abs(raw)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "run", "-C", "internal/bench/plots", ".", raw, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("drawing: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
