package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
)

// exitDiffers is audit's: the node does not agree with the data directory.
const exitDiffers = 11

// shownDifferences is how many differences people are shown; --json has all.
const shownDifferences = 20

func newAudit() *cobra.Command {
	var cfg ourotail.AuditConfig
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Ask the node whether it agrees with a data directory",
		Long: `Chooses outputs and asks the node's own ledger about each, at the block that is
the directory's head: --sample unspent ones out of the whole set, and as many made
by and as many spent by the blocks that can still be undone, taken from the
blocks themselves. Unspent ones must be there with the same address, lovelace,
assets, datum and script; spent ones must not.

While a follower runs on the directory it does the work, and asks the node it
follows unless --socket-path names another. Otherwise the head must be one of
the node's newest k blocks: bring the directory up to date first.

Exit code 0: the node agrees on every output. 11: it does not on some, which are
named with what both sides say. Others as in ourotail --help; then nothing is
known.`,
		Example: `  ourotail audit --socket-path node.socket --network preview
  ourotail audit --socket-path node.socket --data-dir D --sample 100000 --seed 7 --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Sample <= 0 {
				return usage("--sample %d: want a positive number of outputs", cfg.Sample)
			}
			dir, err := auditTarget(cmd, &cfg)
			if err != nil {
				return err
			}
			r, err := audit(cmd, dir, cfg)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(r)
			} else {
				err = printAudit(cmd.OutOrStdout(), r)
			}
			if n := len(r.Differences); n > 0 { // whoever reads it, or not
				err = errors.Join(coded(exitDiffers, fmt.Errorf("the node does not agree on %s of %s", thousands(uint64(n)), plural(r.Checked, "output"))), err)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&cfg.Sample, "sample", ourotail.DefaultAuditSample, "how many outputs of each kind")
	cmd.Flags().Uint64Var(&cfg.Seed, "seed", 1, "of the choice: the same seed at the same block gives the same outputs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addSocketFlag(cmd)
	addDataDirFlag(cmd)
	addNetworkFlags(cmd)
	return cmd
}

// auditTarget reads the flags that name the directory and the node. The network
// is needed for the default directory alone; if it is given, it must be right.
func auditTarget(cmd *cobra.Command, cfg *ourotail.AuditConfig) (dir string, err error) {
	if cfg.Magic, err = wantedMagic(cmd); err != nil {
		return "", err
	}
	if dir, err = readDir(cmd); err != nil {
		return "", err
	}
	if cfg.SocketPath, err = cmd.Flags().GetString("socket-path"); err != nil || cfg.SocketPath == "" {
		return dir, err
	}
	cfg.SocketPath, err = filepath.Abs(cfg.SocketPath) // a follower may run elsewhere
	return dir, err
}

// audit opens the directory, or asks the follower that holds it.
func audit(cmd *cobra.Command, dir string, cfg ourotail.AuditConfig) (r ourotail.AuditReport, err error) {
	log, err := newLogger(cmd, cmd.ErrOrStderr())
	if err != nil {
		return r, err
	}
	cfg.Logger = log
	told := false
	err = askOrRead(cmd.Context(), dir, log, askPatience, func() (err error) {
		if !told && isTerminal(cmd.ErrOrStderr()) {
			fmt.Fprintln(cmd.ErrOrStderr(), "The follower that holds the directory does the audit …")
		}
		told = true
		r, err = remoteAudit(cmd.Context(), dir, cfg)
		return err
	}, func(d *ourotail.Dir) (err error) {
		if _, err := socketPath(cmd); err != nil {
			return err
		}
		show := newAuditProgress(cmd.ErrOrStderr())
		defer show.end()
		cfg.Progress = show.report
		r, err = d.Audit(cmd.Context(), cfg)
		return err
	})
	return r, err
}

// remoteAudit asks the holder of a data directory.
func remoteAudit(ctx context.Context, dir string, cfg ourotail.AuditConfig) (r ourotail.AuditReport, err error) {
	values := url.Values{"sample": {strconv.Itoa(cfg.Sample)}, "seed": {strconv.FormatUint(cfg.Seed, 10)},
		"magic": {strconv.FormatUint(uint64(cfg.Magic), 10)}, "socket": {cfg.SocketPath}}
	err = askJSON(ctx, dir, "/audit", values, &r)
	return r, err
}

// serveAudit answers remoteAudit.
func serveAudit(f *ourotail.Follower) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q := r.URL.Query()
		sample, err := strconv.Atoi(q.Get("sample"))
		seed, serr := strconv.ParseUint(q.Get("seed"), 10, 64)
		magic, merr := askedMagic(r)
		if err := errors.Join(err, serr, merr); err != nil {
			return coded(exitBadInput, err)
		}
		report, err := f.Audit(r.Context(), ourotail.AuditConfig{SocketPath: q.Get("socket"), Magic: magic, Sample: sample, Seed: seed})
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) // who asked has gone
		return nil
	}
}

func printAudit(w io.Writer, r ourotail.AuditReport) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	count := func(n int) string { return thousands(uint64(n)) }
	row("at", "%s", r.Point)
	row("", "height %d, %s", r.Height, r.Era)
	row("compared", "%s outputs: %s unspent, %s spent", count(r.Checked), count(r.Unspent), count(r.Spent))
	row("chosen", "%s of the whole set, %s of what the last %s made or spent, seed %d", count(r.Sampled), count(r.Recent), plural(r.Blocks, "block"), r.Seed)
	if len(r.Differences) == 0 {
		row("result", "the node agrees on every one")
	} else {
		row("result", "THE NODE DOES NOT AGREE on %s", plural(len(r.Differences), "output"))
	}
	for i, d := range r.Differences {
		if i == shownDifferences {
			fmt.Fprintf(&b, "\n… and %s more; --json prints all\n", count(len(r.Differences)-i))
			break
		}
		fmt.Fprintf(&b, "\n%s: %s\n", d.Ref, differenceText(d))
		fmt.Fprintf(&b, "  ours  %s\n  node  %s\n", orNotUnspent(d.Ours), orNotUnspent(d.Node))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func differenceText(d ourotail.AuditDifference) string {
	switch d.Kind {
	case ourotail.DiffMissing:
		return "unspent for the node, not in the directory"
	case ourotail.DiffExtra:
		return "unspent in the directory, not for the node"
	case ourotail.DiffContents:
		return "not the same " + strings.Join(d.Fields, ", ")
	}
	return "cannot be decoded"
}

func orNotUnspent(contents string) string {
	if contents == "" {
		return "not unspent"
	}
	return contents
}

// auditProgress shows a progress bar for each phase, on a terminal.
type auditProgress struct {
	out   io.Writer // nil: nobody looks
	phase ourotail.AuditPhase
	bar   *progressbar.ProgressBar
}

func newAuditProgress(out io.Writer) *auditProgress {
	if !isTerminal(out) {
		out = nil
	}
	return &auditProgress{out: out}
}

func (p *auditProgress) report(phase ourotail.AuditPhase, done, total int) {
	if p.out == nil {
		return
	}
	if p.bar == nil || p.phase != phase {
		p.end()
		p.phase = phase
		p.bar = progressbar.NewOptions(max(total, 1), progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(string(phase)),
			progressbar.OptionShowCount(), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	_ = p.bar.Set(min(done, max(total, 1))) // it can only fail to draw
}

func (p *auditProgress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
