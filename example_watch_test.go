package ourotail_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ourotail/ourotail"
)

// Wait for a transaction to have two blocks on top, and go on until no fork can take
// it back.
func ExampleFollower_WatchTx() {
	node := startNode()
	defer node.Stop()
	ctx := context.Background()
	f, err := ourotail.Open(ctx, node.Config)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	tx := node.Pay(1_500_000)
	for ev, err := range f.WatchTx(ctx, tx, 2) {
		if err != nil {
			log.Fatal(err)
		}
		switch ev.Kind {
		case ourotail.Update:
			fmt.Println("included,", ev.Left, "more to come")
			node.Grow(1)
		case ourotail.Confirmed:
			fmt.Println("confirmed in block", ev.At.Height)
			node.Grow(int(node.Config.Genesis.K))
		case ourotail.Failed:
			fmt.Println("in the chain, but its scripts failed: it did nothing")
		case ourotail.NegativeConf:
			fmt.Println("a fork took it back")
		case ourotail.Done:
			fmt.Println("final")
		}
	}
	// Output:
	// included, 2 more to come
	// included, 1 more to come
	// confirmed in block 8
	// final
}
