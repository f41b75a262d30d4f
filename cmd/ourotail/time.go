package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/ledger/eras"
)

// timeFacts are what time prints as JSON.
type timeFacts struct {
	Slot        chain.Slot `json:"slot"`
	Time        time.Time  `json:"time"` // when the slot begins, UTC
	Epoch       uint64     `json:"epoch"`
	SlotInEpoch uint64     `json:"slotInEpoch"`
	Source      string     `json:"source"` // "node" or "genesis"
}

func newTime() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "time SLOT|TIME",
		Short: "Turn a slot into a time, or a time into a slot",
		Long: `Says when a slot begins, or which slot a time lies in, and the epoch of it. A slot
is a number, or a point SLOT.HEADERHASH; a time is as in 2024-05-06T07:08:09Z, a
day as in 2024-05-06 is its midnight in UTC, and now is now.

With --socket-path (or CARDANO_NODE_SOCKET_PATH) the node is asked: it knows for
certain, but only up to its horizon, some days ahead. Otherwise the genesis tells,
built in for --network preview, preprod and mainnet, or named by --config: then
slots are taken to be as long for ever as they are now.`,
		Example: `  ourotail time 72316896 --mainnet
  ourotail time 2024-05-06T07:08:09Z --network preprod --json
  ourotail time now --socket-path node.socket --network preview`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			slot, at, err := parseMoment(args[0], time.Now())
			if err != nil {
				return err
			}
			facts, err := convert(cmd, slot, at)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(facts)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "slot   %d\ntime   %s\nepoch  %d, slot %d of it\n",
				facts.Slot, facts.Time.Format(time.RFC3339Nano), facts.Epoch, facts.SlotInEpoch)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	addNodeFlags(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if none, ok := negative(err); ok {
			return usage("%s is before the first slot, which is 0: want a slot or a time, see --help", none)
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// negative tells whether what was taken for a flag is a number below 0.
func negative(err error) (text string, ok bool) {
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return "", false
	}
	text = "-" + none.GetSpecifiedShortnames()
	_, nerr := strconv.ParseFloat(text, 64)
	return text, nerr == nil
}

// parseMoment reads a slot, or a time, which is not nil then.
func parseMoment(text string, now time.Time) (chain.Slot, *time.Time, error) {
	number, _, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		if number != text {
			if _, err := chain.ParsePoint(text); err != nil {
				return 0, nil, coded(exitUsage, err)
			}
		}
		return chain.Slot(n), nil, nil
	}
	if text == "now" {
		return 0, &now, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return 0, &t, nil
		}
	}
	return 0, nil, usage("%q is neither a slot nor a time: want a number, or as in 2024-05-06T07:08:09Z", text)
}

// convert fills in what is not given.
func convert(cmd *cobra.Command, slot chain.Slot, at *time.Time) (f timeFacts, err error) {
	calendar, source, err := calendarOf(cmd)
	if err != nil {
		return f, err
	}
	f = timeFacts{Slot: slot, Source: source}
	if at != nil {
		if f.Slot, err = calendar.Slot(*at); err != nil {
			return f, momentError(err)
		}
	}
	if f.Time, err = calendar.Time(f.Slot); err != nil {
		return f, momentError(err)
	}
	f.Epoch, f.SlotInEpoch, err = calendar.Epoch(f.Slot)
	return f, momentError(err)
}

func momentError(err error) error {
	switch {
	case errors.Is(err, eras.ErrHorizon):
		return fmt.Errorf("%w; ask again when the chain is further, or without --socket-path to assume that nothing changes", err)
	case errors.Is(err, eras.ErrBeforeStart):
		return coded(exitUsage, err)
	}
	return err
}

// calendarOf asks the node if there is one, and the genesis otherwise.
func calendarOf(cmd *cobra.Command) (s eras.Summaries, source string, err error) {
	if path, _ := cmd.Flags().GetString("socket-path"); path != "" {
		cfg, err := nodeConfig(cmd)
		if err != nil {
			return s, "", err
		}
		s, err = chainsync.ReadEras(cmd.Context(), cfg)
		return s, "node", err
	}
	g, err := network(cmd)
	if err != nil {
		return s, "", err
	}
	s, ok := g.Eras()
	if !ok {
		return s, "", usage("the genesis files of this network do not say when Byron ended: give --socket-path to ask its node")
	}
	return s, "genesis", nil
}
