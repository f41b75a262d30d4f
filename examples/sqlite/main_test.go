package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

// The database is stopped at any moment, forks come meanwhile, and in the end it
// holds what the address holds.
func TestTheDatabaseIsRightAfterForksAndRestarts(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 2, K: 400, EpochBlocks: 8}, 90) // it is never more than k behind
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	g, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	srv := devtest.Start(t, devnode.Config{Magic: g.Magic, Chain: c})
	cfg := ourotail.Config{SocketPath: srv.Socket(), Genesis: g, DataDir: filepath.Join(dir, "data"), Memory: 64 << 20}
	file := filepath.Join(dir, "outputs.db")
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- feed(ctx, cfg, "*", file) }()
		for range 1 + rnd.IntN(4) {
			grow(t, c, rnd)
		}
		if round == 0 {
			await(t, file, c, done)
		} else {
			time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond) // anywhere
		}
		cancel()
		stopped(t, <-done)
		grow(t, c, rnd)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- feed(ctx, cfg, "*", file) }()
	await(t, file, c, done)
	cancel()
	stopped(t, <-done)

	got := held(t, file)
	f, err := ourotail.OpenDir(cfg.DataDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v := f.View()
	defer v.Close()
	if err := v.UTxOs(t.Context(), query.Everything(), func(u *chain.UTxO) error {
		if got[u.Ref.String()] != int64(u.Out.Lovelace) {
			t.Errorf("%v has %d lovelace, the database says %d", u.Ref, u.Out.Lovelace, got[u.Ref.String()])
		}
		delete(got, u.Ref.String())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for ref := range got {
		t.Errorf("%s is in the database only", ref)
	}
}

func stopped(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func grow(t *testing.T, c *devnode.Chain, rnd *rand.Rand) {
	t.Helper()
	err := c.Extend(1)
	if err == nil && rnd.IntN(2) == 0 {
		depth := 1 + rnd.IntN(5)
		err = c.Fork(depth, depth+1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until the database stands at the chain's tip.
func await(t *testing.T, file string, c *devnode.Chain, done <-chan error) {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if len(done) > 0 {
			t.Fatal(<-done)
		}
		var text string
		if err := db.QueryRow("SELECT cursor FROM position").Scan(&text); err != nil {
			continue // not yet, or just being written
		}
		if at, err := chain.ParseToken(text); err == nil && at.At.Point == c.Tip().Point {
			return
		}
	}
	t.Fatal("the database does not come to the tip")
}

// held is what the database says is unspent.
func held(t *testing.T, file string) map[string]int64 {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT ref, lovelace FROM outputs WHERE spent IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]int64{}
	for rows.Next() {
		var ref string
		var lovelace int64
		if err := rows.Scan(&ref, &lovelace); err != nil {
			t.Fatal(err)
		}
		got[ref] = lovelace
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}
