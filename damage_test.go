package ourotail_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
	"github.com/ourotail/ourotail/store"
)

// TestDamageEndsAnIdleFollower: the chain is quiet, and a query finds the tables
// damaged. Health says so, subscriptions fail, and following ends with it instead
// of waiting for the next block, as does closing.
func TestDamageEndsAnIdleFollower(t *testing.T) {
	s := serve(t, forge.Options{Seed: 9, EpochBlocks: 10, K: 50}, 120)
	cfg := s.cfg
	cfg.ExitAtTip = true
	f, err := ourotail.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Run(t.Context()), f.Close()); err != nil { // which makes tables
		t.Fatal(err)
	}
	cfg.ExitAtTip = false
	if f, err = ourotail.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sub, err := f.SubscribeUTxOs(t.Context(), query.Everything(), hub.Options{Start: hub.Tip, Bound: hub.Unbounded})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- f.Run(ctx) }()
	devtest.Eventually(t, "health", func() bool { return f.Health().Grade == ourotail.Healthy })
	tables, err := filepath.Glob(filepath.Join(cfg.DataDir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		zeroStretch(t, name)
	}
	if _, err := f.Status(t.Context(), true); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("the digest of damaged tables: %v", err)
	}
	if h := f.Health(); h.Grade != ourotail.Unhealthy || !strings.Contains(strings.Join(h.Reasons, " "), "damaged") || !strings.Contains(h.LastError, "damaged") {
		t.Errorf("%+v", h)
	}
	if err := <-ran; !errors.Is(err, store.ErrDamaged) || errors.Is(err, context.Canceled) {
		t.Errorf("following ended with %v", err)
	}
	if ctx.Err() != nil {
		t.Error("it did not end by itself")
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("the subscription ended with %v", err)
	}
	if h := f.Health(); h.Grade != ourotail.Unhealthy {
		t.Errorf("%+v", h)
	}
	if err := f.Close(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("closing: %v", err)
	}
}

// zeroStretch overwrites the middle of a file.
func zeroStretch(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, info.Size()/2), info.Size()/8); err != nil {
		t.Fatal(err)
	}
}
