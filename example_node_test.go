package ourotail_test

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/forge"
	"github.com/ourotail/ourotail/ledger"
)

// node stands for a cardano-node in the examples: it serves a generated chain that
// pays an address when it is told to.
type node struct {
	Address string          // that is paid
	Config  ourotail.Config // to follow it with
	chain   *devnode.Chain
	stop    func()
}

// startNode returns a node whose chain has paid the address 5 ADA, then 2, and spent
// the 5.
func startNode() *node {
	dir, err := os.MkdirTemp("", "node")
	check(err)
	c, err := devnode.Generate(forge.Options{Seed: 1, K: 30, Eras: []forge.EraSpan{{Era: chain.Conway}}})
	check(err)
	check(c.Genesis().WriteConfig(dir))
	genesis, err := ledger.LoadGenesis(filepath.Join(dir, "config.json"))
	check(err)
	n := &node{chain: c, Address: address.Text(payee), Config: ourotail.Config{
		SocketPath: filepath.Join(dir, "node.socket"), Genesis: genesis, DataDir: filepath.Join(dir, "data"),
	}}
	check(c.Extend(5))
	first := n.Pay(5_000_000)
	n.Pay(2_000_000)
	n.Spend(chain.TxIn{ID: first})
	ctx, cancel := context.WithCancel(context.Background())
	srv, err := devnode.NewServer(devnode.Config{Socket: n.Config.SocketPath, Magic: genesis.Magic, Chain: c})
	check(err)
	served := make(chan error, 1)
	go func() { served <- srv.Run(ctx) }()
	<-srv.Ready()
	n.stop = func() {
		cancel()
		check(<-served)
		check(os.RemoveAll(dir))
	}
	return n
}

var payee = append([]byte{0x60}, make([]byte, 28)...) // an enterprise address on a test network

// Pay makes a block that pays the address, and returns the transaction.
func (n *node) Pay(lovelace uint64) chain.TxID {
	ids, err := n.chain.Include(forge.Order{Pay: []forge.Payment{{Address: payee, Lovelace: lovelace}}})
	check(err)
	return ids[0]
}

// Spend makes a block that spends an output of the address.
func (n *node) Spend(ref chain.TxIn) {
	_, err := n.chain.Include(forge.Order{Spend: []chain.TxIn{ref}})
	check(err)
}

// Grow makes so many blocks.
func (n *node) Grow(blocks int) { check(n.chain.Extend(blocks)) }

// Fork replaces the newest block by two others, in which nobody is paid.
func (n *node) Fork() { check(n.chain.Fork(1, 2)) }

func (n *node) Stop() { n.stop() }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
