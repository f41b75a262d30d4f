package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/store"
)

func newCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify a data directory, without changing anything in it",
		Long: `Reads all of a data directory that nobody is following into, and compares
everything with everything else: the files with their checksums and with each
other, the chain from its first block to the head, the journal, every output and
spend with the journal and the counts, the indexes with the outputs, and every
block that is kept with its hash.

It names each kind of difference with a first example and says what to do; it
never changes anything, and needs no permission to write. Of the set it prints
the accumulator: two machines with the same head and accumulator hold the same
outputs. To compare with the node's own ledger there is audit.

It exits with 13 if anything is wrong, and with 15 if a process was killed in the
middle of a large write: then start once, which finishes it, and check again.`,
		Example: `  ourotail check --network preview
  ourotail check --data-dir D --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := readDir(cmd)
			if err != nil {
				return err
			}
			magic, err := wantedMagic(cmd)
			if err != nil {
				return err
			}
			log, err := newLogger(cmd, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			show := &checkBar{out: cmd.ErrOrStderr()}
			began := time.Now()
			r, err := ourotail.Check(cmd.Context(), ourotail.CheckConfig{DataDir: dir, Logger: log, Progress: show.progress})
			show.end()
			var held *store.HeldError
			if errors.As(err, &held) {
				return coded(exitHeld, fmt.Errorf("%w; stop it to check the directory", err))
			}
			if err != nil {
				return err
			}
			if r.Magic != 0 { // damaged files may not tell
				if err := sameNetwork(dir, r.Magic, magic); err != nil {
					return err
				}
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			} else {
				err = printCheck(cmd.OutOrStdout(), r, time.Since(began))
			}
			switch {
			case r.OK:
			case r.Unfinished:
				err = errors.Join(coded(exitUnfinished, fmt.Errorf("%s is as a kill left it: %s", dir, r.Repair)), err)
			default:
				err = errors.Join(coded(exitDamaged, fmt.Errorf("%s is not as it should be: %s", dir, r.Repair)), err)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addDataDirFlag(cmd)
	addNetworkFlags(cmd)
	return cmd
}

// checkBar shows how far checking is, to a person at a terminal.
type checkBar struct {
	out  io.Writer
	what string
	bar  *progressbar.ProgressBar
}

func (b *checkBar) progress(what string, done, total int64) {
	if !isTerminal(b.out) {
		return
	}
	if what != b.what {
		b.end()
		if total <= 0 {
			total = -1 // a spinner
		}
		b.what = what
		opts := []progressbar.Option{progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(what), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish()}
		if what == "tables" {
			opts = append(opts, progressbar.OptionShowBytes(true))
		} else {
			opts = append(opts, progressbar.OptionShowCount())
		}
		b.bar = progressbar.NewOptions64(total, opts...)
	}
	_ = b.bar.Set64(done) // a terminal that does not draw is no reason to stop
}

func (b *checkBar) end() {
	if b.bar != nil {
		_ = b.bar.Exit()
		_ = b.bar.Clear()
		b.bar = nil
	}
}

func printCheck(w io.Writer, r *ourotail.CheckReport, took time.Duration) error {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if r.Complete {
		name := r.Network
		if name == "" {
			name = "magic " + strconv.FormatUint(uint64(r.Magic), 10)
		}
		row("network", "%s, k = %d, %s", name, r.K, r.Retention)
		row("head", "%s", r.Head)
		row("", "height %d, the chain has %s", r.Height, plural(int(r.Blocks), "block"))
		row("journal", "%s above %s, %s raw", plural(int(r.Records), "record"), r.Floor, humanize.IBytes(uint64(r.RawBytes)))
		lovelace, _ := strconv.ParseUint(r.Digest.Lovelace, 10, 64)
		row("outputs", "%s unspent, %s", thousands(uint64(r.Digest.UTxOs)), ada(lovelace))
		row("", "%s spent within reach of a rollback", thousands(uint64(r.Marks)))
		if r.Spent > 0 {
			row("", "%s spent for good", thousands(uint64(r.Spent)))
		}
		row("index", "%s", plural(int(r.Indexed), "key"))
		row("digest", "%s", r.Digest.Accumulator)
	}
	row("files", "%s of %s", plural(r.Tables, "table"), humanize.IBytes(uint64(r.TableBytes)))
	for _, n := range r.Notes {
		row("note", "%s", n)
	}
	if r.OK {
		_, err := fmt.Fprintf(w, "\nAll of it agrees. It took %s.\n", took.Round(10*time.Millisecond))
		return err
	}
	if r.Unfinished {
		_, err := fmt.Fprintln(w, "\nNothing is wrong with the files. What they hold was not compared.")
		return err
	}
	fmt.Fprintln(w)
	for _, f := range r.Findings {
		times := ""
		if f.Count > 1 {
			times = fmt.Sprintf(" (and %s more)", thousands(uint64(f.Count-1)))
		}
		fmt.Fprintf(w, "WRONG  %-12s %s%s\n", f.Kind, f.First, times)
	}
	if !r.Complete {
		fmt.Fprintln(w, "\nWhat the files hold was not compared.")
	}
	return nil
}
