package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
)

// options are those of the chain to generate.
func (f *devnodeFlags) options(cmd *cobra.Command) (forge.Options, error) {
	opts := forge.Options{Seed: f.seed, K: f.k, Magic: forge.DefaultMagic}
	var err error
	if opts.Shape, err = forge.ParseShape(f.generate); err != nil {
		return opts, usage("--generate: %w", err)
	}
	for _, name := range []string{"testnet-magic"} { // --network may come from an environment made for a real node
		if text, _ := cmd.Flags().GetString(name); cmd.Flags().Changed(name) {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil || n == 0 {
				return opts, usage("--%s: a generated chain wants a network magic, a number above 0", name)
			}
			opts.Magic = uint32(n)
		}
	}
	return opts, nil
}

// write makes a chain in a folder.
func (f *devnodeFlags) write(cmd *cobra.Command, log *slog.Logger) error {
	if f.generate == "" || f.socket != "" {
		return usage("--out writes a generated chain, and serves nothing: give --generate, and no --socket")
	}
	opts, err := f.options(cmd)
	if err != nil {
		return err
	}
	var bar *progressbar.ProgressBar
	if w := cmd.ErrOrStderr(); isTerminal(w) {
		bar = progressbar.NewOptions(f.blocks, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("blocks"), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	last := time.Now()
	err = devnode.GenerateDir(cmd.Context(), f.out, opts, f.blocks, func(done int, tip chain.At) {
		if bar != nil {
			_ = bar.Set(done) // what is shown besides is no result
		} else if time.Since(last) > 10*time.Second {
			last = time.Now()
			log.Info("progress", "blocks", done, "of", f.blocks, "tip", tip.String())
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s in %s\nserve them with: ourotail devnode --immutable %s --config %s --socket SOCKET\n",
		plural(f.blocks, "block"), f.out, filepath.Join(f.out, devnode.ImmutableDir), filepath.Join(f.out, "config.json"))
	return err
}
