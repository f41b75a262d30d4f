// Command adder follows a node with adder's own pipeline, from the first block to
// a slot, and does nothing with the events. It has a module of its own, so that
// adder and its requirements are exactly those of its release.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/blinklabs-io/adder/event"
	"github.com/blinklabs-io/adder/input/chainsync"
	"github.com/blinklabs-io/adder/output/embedded"
	"github.com/blinklabs-io/adder/pipeline"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "adder:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: adder SOCKET MAGIC SLOT")
	}
	magic, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return err
	}
	last, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	blocks, done := 0, make(chan struct{})
	p := pipeline.New()
	p.AddInput(chainsync.New(chainsync.WithNetworkMagic(uint32(magic)), chainsync.WithSocketPath(args[0])))
	p.AddOutput(embedded.New(embedded.WithCallbackFunc(func(e event.Event) error {
		if b, ok := e.Context.(event.BlockContext); ok && e.Type == "input.block" {
			if blocks++; b.SlotNumber == last {
				close(done)
			}
		}
		return nil
	})))
	if err := p.Start(); err != nil {
		return err
	}
	select {
	case <-done:
	case err := <-p.ErrorChan():
		return err
	}
	runtime.ReadMemStats(&after)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"units": blocks, "allocs": float64(after.Mallocs - before.Mallocs)})
}
