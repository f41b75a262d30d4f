package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ourotail",
		Short: "tail -f for the Cardano ledger, with every spent output resolved",
		Long: `ourotail opens a cardano-node's local socket, follows its chain, resolves every
output that is spent, and shows what happens: on a terminal, as JSON lines, or as
a set of unspent outputs that can be asked.

Without a node: ourotail demo
With one:       ourotail run --socket-path /path/to/node.socket --network preview

Every flag can also be given as an environment variable OUROTAIL_FLAG_NAME; the
names that cardano-node and cardano-cli use work as well
(CARDANO_NODE_SOCKET_PATH, CARDANO_NODE_NETWORK_ID). Flags beat the environment.

` + exitHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags())
		},
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf(" Did you mean %s?", strings.Join(near, " or "))
			}
			return usage("no command is called %q.%s See ourotail --help", args[0], hint)
		},
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage("%w (see --help)", err)
	})
	root.PersistentFlags().String("log-level", "info", "debug, info, warn or error")
	root.PersistentFlags().String("log-format", "text", "text or json; logs go to stderr")
	root.AddCommand(newRun(), newTail(), newUTxOs(), newStatus(), newInspect(), newDevnode(), newDemo(), newDrill(), newDrillTail(), newVersion())
	root.AddCommand(newAudit(), newCheck())
	root.AddCommand(newParams(), newTime(), newMempool(), newSubmit(), newTx())
	return root
}

// envNames are the names that operators have set already, tried after
// OUROTAIL_FLAG_NAME.
var envNames = map[string]string{
	"socket-path": "CARDANO_NODE_SOCKET_PATH",
	"network":     "CARDANO_NODE_NETWORK_ID",
}

// fromEnvironment sets the flags that were not given from the environment. Of
// the flags that choose the network, one that was given silences the others.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	chosen := false
	for _, name := range networkFlags {
		chosen = chosen || flags.Changed(name)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil || chosen && isNetworkFlag(f.Name) {
			return
		}
		for _, name := range []string{"OUROTAIL_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")), envNames[f.Name]} {
			if v := os.Getenv(name); name != "" && v != "" {
				if serr := flags.Set(f.Name, v); serr != nil {
					err = usage("environment %s=%q: %w", name, v, serr)
				}
				return
			}
		}
	})
	return err
}

// newLogger makes the logger that --log-level and --log-format ask for.
func newLogger(cmd *cobra.Command, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	text, err := cmd.Flags().GetString("log-level")
	if err != nil {
		return nil, err
	}
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return nil, usage("--log-level: %w", err)
	}
	opts := &slog.HandlerOptions{Level: level}
	format, err := cmd.Flags().GetString("log-format")
	if err != nil {
		return nil, err
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, usage("--log-format: %q is neither text nor json", format)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ourotail", version)
			return err
		},
	}
}
