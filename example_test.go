package ourotail_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// Watch an address, from the chain's first block to its tip.
func Example() {
	node := startNode() // in place of a cardano-node
	defer node.Stop()
	cfg := node.Config // socket, genesis, data directory
	cfg.ExitAtTip = true

	ctx := context.Background()
	f, err := ourotail.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	q, err := query.ParseUTxO(node.Address)
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range f.UTxOs(ctx, q, ourotail.FromOrigin()) {
		if err != nil {
			log.Fatal(err)
		}
		when := ev.Time().Format("15:04:05")
		switch ev.Kind {
		case chain.Created:
			fmt.Println(when, "received", ev.UTxO.Out.Lovelace)
		case chain.Spent:
			fmt.Println(when, "spent", ev.UTxO.Out.Lovelace)
		case chain.RolledBack:
			fmt.Println("a fork: nothing above block", ev.At.Height, "has happened")
		}
	}
	// Output:
	// 00:13:32 received 5000000
	// 00:17:05 received 2000000
	// 00:17:45 spent 5000000
}
