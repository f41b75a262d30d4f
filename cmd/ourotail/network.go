package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// networkFlags choose the network, one of them.
var networkFlags = []string{"network", "mainnet", "testnet-magic", "config"}

func isNetworkFlag(name string) bool {
	for _, f := range networkFlags {
		if f == name {
			return true
		}
	}
	return false
}

func addNetworkFlags(cmd *cobra.Command) {
	cmd.Flags().String("network", "", "mainnet, preprod, preview, or a network magic (env CARDANO_NODE_NETWORK_ID)")
	cmd.Flags().Bool("mainnet", false, "the same as --network mainnet")
	cmd.Flags().String("testnet-magic", "", "the network with this magic number")
	cmd.Flags().String("config", "", "the node's own config.json, which names the genesis files: magic, k and genesis outputs are taken from them")
}

// network reads which network is meant.
func network(cmd *cobra.Command) (*ledger.Genesis, error) {
	flags := cmd.Flags()
	get := func(name string) string {
		v, _ := flags.GetString(name)
		return v
	}
	config, name, magic := get("config"), get("network"), get("testnet-magic")
	isMainnet, _ := flags.GetBool("mainnet")
	if isMainnet {
		if name != "" && name != "mainnet" || magic != "" {
			return nil, usage("--mainnet contradicts --network or --testnet-magic")
		}
		name = "mainnet"
	}
	if magic != "" {
		if name != "" {
			return nil, usage("give one of --network, --mainnet and --testnet-magic")
		}
		name = magic
	}
	if config != "" {
		g, err := ledger.LoadGenesis(config)
		if err != nil {
			return nil, coded(exitBadInput, err)
		}
		if name != "" && name != g.Name && name != strconv.FormatUint(uint64(g.Magic), 10) {
			return nil, usage("--config %s is of the network with magic %d, not of %s", config, g.Magic, name)
		}
		return g, nil
	}
	if name == "" {
		return nil, usage("which network? Give --network preview, --network preprod, --mainnet, or --config with the node's config.json")
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		known := ledger.NetworkName(uint32(n))
		if known == "" {
			return nil, usage("the network with magic %d has no built-in genesis: pass --config with the node's config.json, which names the genesis files", n)
		}
		name = known
	}
	g, err := ledger.Network(name)
	if err != nil {
		return nil, coded(exitUsage, err)
	}
	return g, nil
}

func addSocketFlag(cmd *cobra.Command) {
	cmd.Flags().String("socket-path", "", "the node's Unix socket (env CARDANO_NODE_SOCKET_PATH)")
}

func socketPath(cmd *cobra.Command) (string, error) {
	path, err := cmd.Flags().GetString("socket-path")
	if err == nil && path == "" {
		err = usage("which node? Give --socket-path, or set CARDANO_NODE_SOCKET_PATH")
	}
	return path, err
}

func addDataDirFlag(cmd *cobra.Command) {
	cmd.Flags().String("data-dir", "", "where ourotail keeps what it knows (default: a folder named after the network in "+dataHome()+")")
}

// dataHome is where data directories go by default.
func dataHome() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "ourotail")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "ourotail")
	}
	return "ourotail-data"
}

// dataDir returns --data-dir, or the network's default.
func dataDir(cmd *cobra.Command, g *ledger.Genesis) (string, error) {
	dir, err := cmd.Flags().GetString("data-dir")
	if err != nil || dir != "" {
		return dir, err
	}
	if g == nil {
		return "", usage("which data directory? Give --data-dir, or a network for its default")
	}
	name := g.Name
	if name == "" {
		name = strconv.FormatUint(uint64(g.Magic), 10)
	}
	return filepath.Join(dataHome(), name), nil
}

// readDir is dataDir for commands that only read: a network is not needed when
// the directory is named.
func readDir(cmd *cobra.Command) (string, error) {
	if dir, _ := cmd.Flags().GetString("data-dir"); dir != "" {
		return dir, nil
	}
	for _, name := range networkFlags {
		if cmd.Flags().Changed(name) {
			g, err := network(cmd)
			if err != nil {
				return "", err
			}
			return dataDir(cmd, g)
		}
	}
	return dataDir(cmd, nil)
}

// wantedMagic is the magic of the network that was named, 0 if none was: a command
// that is given a data directory needs no network, but must not answer for another.
func wantedMagic(cmd *cobra.Command) (uint32, error) {
	for _, name := range networkFlags {
		if cmd.Flags().Changed(name) {
			return networkMagic(cmd)
		}
	}
	return 0, nil
}

// sameNetwork refuses a directory of another network than was named.
func sameNetwork(dir string, got, want uint32) error {
	if want == 0 || got == want {
		return nil
	}
	return fmt.Errorf("%s: %w: its magic is %d, wanted is %d", dir, store.ErrNetwork, got, want)
}
