package eras_test

import (
	"fmt"
	"time"

	"github.com/ourotail/ourotail/ledger"
)

// A slot of mainnet as a time, and back. The calendar of a running node, which
// has a horizon, is used in the same way: chainsync.ReadEras returns it.
func Example() {
	g, err := ledger.Network("mainnet")
	if err != nil {
		panic(err)
	}
	calendar, ok := g.Eras()
	if !ok {
		panic("the genesis does not say when Byron ended")
	}
	at, err := calendar.Time(4_492_800)
	if err != nil {
		panic(err)
	}
	slot, err := calendar.Slot(at.Add(1500 * time.Millisecond))
	if err != nil {
		panic(err)
	}
	epoch, _, err := calendar.Epoch(slot)
	if err != nil {
		panic(err)
	}
	fmt.Println(at.Format(time.RFC3339), slot, epoch)
	// Output: 2020-07-29T21:44:51Z 4492801 208
}
