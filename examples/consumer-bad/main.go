// Command consumer-bad is what many write first: it keeps a balance per address,
// adds what is created and takes away what is spent. It passes over undo lines,
// and so is wrong after the first fork that matters.
//
//	ourotail drill -- go run ./examples/consumer-bad
//
// With -bug scripts it acts on undo, but passes over transactions whose scripts
// failed, as if these did nothing. They spend their collateral.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
)

type line struct {
	Event  string
	Point  *struct{ Slot int64 }
	Record struct {
		Kind    string
		TxValid bool `json:"tx_valid"`
		Output  struct {
			Address string
			Value   struct{ Coins string }
		}
	}
}

// change is what one line did to a balance.
type change struct {
	slot    int64
	address string
	amount  int64
}

func main() {
	bug := flag.String("bug", "undo", "undo or scripts")
	flag.Parse()
	balances := map[string]int64{}
	var changes []change
	for in := json.NewDecoder(os.Stdin); ; {
		var l line
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		slot := int64(-1)
		if l.Point != nil && l.Event != "seed" {
			slot = l.Point.Slot
		}
		switch {
		case l.Event == "undo":
			if *bug == "undo" {
				continue // the bug
			}
			for len(changes) > 0 && changes[len(changes)-1].slot > slot {
				last := changes[len(changes)-1]
				balances[last.address] -= last.amount
				changes = changes[:len(changes)-1]
			}
		case *bug == "scripts" && !l.Record.TxValid: // the other bug
		default:
			amount, _ := strconv.ParseInt(l.Record.Output.Value.Coins, 10, 64)
			if l.Record.Kind == "spent" {
				amount = -amount
			}
			balances[l.Record.Output.Address] += amount
			changes = append(changes, change{slot, l.Record.Output.Address, amount})
		}
	}
	for address, lovelace := range balances {
		fmt.Println(address, lovelace)
	}
}
