package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/chainsync"
)

// addNodeFlags are for commands that ask a node and need no genesis.
func addNodeFlags(cmd *cobra.Command) {
	addSocketFlag(cmd)
	addNetworkFlags(cmd)
}

// nodeConfig reads which node is meant.
func nodeConfig(cmd *cobra.Command) (cfg chainsync.Config, err error) {
	if cfg.SocketPath, err = socketPath(cmd); err != nil {
		return cfg, err
	}
	cfg.Magic, err = networkMagic(cmd)
	return cfg, err
}

// networkMagic is network for who needs no more than the magic: any number will
// do.
func networkMagic(cmd *cobra.Command) (uint32, error) {
	flags := cmd.Flags()
	text := func(name string) string {
		v, _ := flags.GetString(name)
		return v
	}
	isMainnet, _ := flags.GetBool("mainnet")
	// What contradicts itself, and what has a name, is for network.
	if number := text("network") + text("testnet-magic"); text("config") == "" && !isMainnet && (text("network") == "" || text("testnet-magic") == "") {
		if n, err := strconv.ParseUint(number, 10, 32); err == nil && n > 0 {
			return uint32(n), nil
		}
	}
	g, err := network(cmd)
	if err != nil {
		return 0, err
	}
	return g.Magic, nil
}

// withNode connects to the node that the flags name and calls f.
func withNode(cmd *cobra.Command, f func(context.Context, *chainsync.Conn) error) error {
	cfg, err := nodeConfig(cmd)
	if err != nil {
		return err
	}
	conn, err := chainsync.Dial(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(cmd.Context(), conn)
}
