package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
)

func newStatus() *cobra.Command {
	var asJSON, digest, check bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far a data directory is and what its follower does",
		Long: `Shows head, node's tip, era, number of unspent outputs and lovelace of a data
directory, asked of the follower that holds it or read from disk.

--digest reads the whole set and adds its count, lovelace and accumulator. Two
directories with the same accumulator hold the same outputs.`,
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
			var s ourotail.Status
			err = askOrRead(cmd.Context(), dir, log, askPatience, func() (err error) {
				s, err = remoteStatus(cmd.Context(), dir, digest)
				return err
			}, func(d *ourotail.Dir) (err error) {
				s, err = d.Status(cmd.Context(), digest)
				return err
			})
			if err != nil {
				return err
			}
			if err := sameNetwork(dir, s.Magic, magic); err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(s)
			} else {
				err = printStatus(cmd.OutOrStdout(), s)
			}
			if !check {
				return err
			}
			return errors.Join(verdict(dir, s), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&digest, "digest", false, "read the whole set: count, lovelace, accumulator")
	cmd.Flags().BoolVar(&check, "check", false, "for monitors: exit with 8 if the follower is degraded, 9 if it is failing, 7 if none runs")
	addDataDirFlag(cmd)
	addNetworkFlags(cmd)
	return cmd
}

// verdict is what --check exits with.
func verdict(dir string, s ourotail.Status) error {
	if s.Health == nil {
		return coded(exitNotThere, fmt.Errorf("no follower is running on %s", dir))
	}
	text := strings.Join(s.Health.Reasons, "; ")
	switch s.Health.Grade {
	case ourotail.Degraded:
		return coded(exitDegraded, errors.New(text))
	case ourotail.Unhealthy:
		return coded(exitFailing, errors.New(text))
	}
	return nil
}

func printStatus(w io.Writer, s ourotail.Status) error {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	network := s.Network
	if network == "" {
		network = "magic " + strconv.FormatUint(uint64(s.Magic), 10)
	}
	row("network", "%s, k = %d, %s", network, s.K, s.Retention)
	row("head", "%s", s.Head)
	row("", "height %d, %s", s.Height, s.Era)
	switch {
	case s.Tip != nil:
		row("node", "%s", s.Tip.Point)
		row("", "height %d, %d blocks ahead", s.Tip.Height, max(s.Tip.Height-max(s.Height, 0), 0))
	case !s.Running:
		row("node", "no follower is running")
	}
	if s.Phase != "" {
		row("phase", "%s", s.Phase)
	}
	if h := s.Health; h != nil {
		row("health", "%s", h.Grade)
		for _, reason := range h.Reasons {
			row("", "%s", reason)
		}
		if h.LagSlots >= 0 {
			row("", "%d blocks and %d slots behind", max(h.LagBlocks, 0), h.LagSlots)
		}
		row("", "node quiet for %.0f s %s", h.QuietSeconds, h.Probe)
	}
	if d := s.Disk; d != nil {
		waiting := ""
		if d.Unmerged > 0 {
			waiting = fmt.Sprintf(", %d of them to be merged", d.Unmerged)
		}
		row("disk", "%s in %s%s, %s of logs", humanize.IBytes(uint64(d.TableBytes)), plural(d.Tables, "table"), waiting, humanize.IBytes(uint64(d.LogBytes)))
		reserve := ""
		if d.Reserve > 0 {
			reserve = "; following stops below " + humanize.IBytes(d.Reserve)
		}
		row("", "%s free%s", humanize.IBytes(d.FreeBytes), reserve)
	}
	if s.LastError != "" {
		row("error", "%s", s.LastError)
	}
	lovelace, _ := strconv.ParseUint(s.Lovelace, 10, 64)
	row("outputs", "%s unspent, %s", thousands(uint64(s.UTxOs)), ada(lovelace))
	if !s.Index.Built {
		row("index", "%.0f %% built; until then queries read the whole set", 100*s.Index.Done)
	}
	row("floor", "%s", s.Floor)
	if d := s.Digest; d != nil {
		row("digest", "%s over %d outputs, %s lovelace", d.Accumulator, d.UTxOs, d.Lovelace)
	}
	return nil
}
