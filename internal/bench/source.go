package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/devnode/immutable"
)

// source is a chain to measure with.
type source struct {
	name string
	make func(ctx context.Context, b *bench) (data, error)
}

// data is a source that is there.
type data struct {
	immutable string // folder
	config    string // of the network; empty for the one that is built in
	network   string // of that one
	magic     uint32
	blocks    int
	tip       chain.Tip
}

var errNoShared = errors.New("the real chain data is not here (OUROTAIL_SHARED names its folder)")

// sharedDir is the folder of real chain data beside the project.
func sharedDir(elem ...string) (string, error) {
	root := os.Getenv("OUROTAIL_SHARED")
	if root == "" {
		root = filepath.Join("..", "shared")
	}
	dir := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(dir); err != nil {
		return "", errNoShared
	}
	return dir, nil
}

var preview = source{"preview", func(context.Context, *bench) (data, error) {
	dir, err := sharedDir("preview", "immutable")
	if err != nil {
		return data{}, err
	}
	return data{immutable: dir, network: "preview", magic: 2}.open()
}}

// mainnetLike is made once and kept for later runs.
var mainnetLike = source{"mainnet-like", func(ctx context.Context, b *bench) (data, error) {
	dir := filepath.Join(b.cache, fmt.Sprintf("mainnet-like-%d", b.blocks))
	d := data{immutable: filepath.Join(dir, devnode.ImmutableDir), config: filepath.Join(dir, "config.json"), magic: forge.DefaultMagic}
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err != nil {
		if err := os.RemoveAll(dir); err != nil {
			return data{}, err
		}
		opts := forge.Options{Shape: forge.MainnetLike, Seed: 1, Lean: true, K: 2160}
		if err := devnode.GenerateDir(ctx, dir, opts, b.blocks, func(int, chain.At) {}); err != nil {
			return data{}, err
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return data{}, err
		}
	}
	return d.open()
}}

func (d data) open() (data, error) {
	c, err := devnode.OpenImmutable(d.immutable, immutable.Options{})
	if err != nil {
		return d, err
	}
	d.blocks, d.tip = c.Len(), c.Tip()
	return d, nil
}
