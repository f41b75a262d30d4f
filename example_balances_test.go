package ourotail_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// Keep a table of balances in memory that forks cannot spoil. Nothing is kept of what
// lies too deep for a fork, but for the balances themselves.
func ExampleFollower_UTxOs() {
	node := startNode()
	defer node.Stop()
	ctx := context.Background()
	f, err := ourotail.Open(ctx, node.Config)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	balances := map[string]uint64{} // by address
	var recent []ourotail.UTxOEvent // what a fork may undo
	k := chain.Height(node.Config.Genesis.K)
	apply := func(ev *ourotail.UTxOEvent, created bool) {
		if addr := string(ev.UTxO.Out.Address); created {
			balances[addr] += ev.UTxO.Out.Lovelace
		} else {
			balances[addr] -= ev.UTxO.Out.Lovelace
		}
	}
	q, err := query.ParseUTxO(node.Address)
	if err != nil {
		log.Fatal(err)
	}
	for ev, err := range f.UTxOs(ctx, q, ourotail.Existing()) {
		if err != nil {
			log.Fatal(err)
		}
		switch ev.Kind {
		case chain.Created, chain.Spent:
			apply(&ev, ev.Kind == chain.Created)
			recent = append(recent, ev)
			recent = slices.DeleteFunc(recent, func(e ourotail.UTxOEvent) bool {
				return e.At.Height < ev.At.Height-k
			})
		case chain.RolledBack:
			recent = slices.DeleteFunc(recent, func(e ourotail.UTxOEvent) bool {
				if e.At.Height <= ev.At.Height {
					return false
				}
				apply(&e, e.Kind == chain.Spent) // the other way round
				return true
			})
		}
		balance := balances[string(payee)]
		fmt.Println(ev.Kind, balance)
		switch { // what happens on the chain next
		case ev.Because == chain.Seed:
			node.Pay(7_000_000)
		case balance == 9_000_000:
			node.Fork()
		case ev.Kind == chain.RolledBack:
			node.Pay(1_000_000)
		default:
			return
		}
	}
	// Output:
	// created 2000000
	// created 9000000
	// rolledback 2000000
	// created 3000000
}
