// Command consumer-bad is what many write first: it keeps a balance per address,
// adds what is created and takes away what is spent. It passes over undo lines,
// and so is wrong after the first fork that matters.
//
//	ourotail drill -- go run ./examples/consumer-bad
//
// With -bug scripts it acts on undo, but passes over transactions whose scripts
// failed, as if these did nothing. They spend their collateral.
//
// With -bug cursor it acts on undo, but keeps the cursor as soon as it has read a line,
// and what it has made of the lines only now and then: killed between the two, it goes
// on behind lines that it has forgotten.
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
	Cursor string
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
	Slot    int64
	Address string
	Amount  int64
}

func main() {
	bug := flag.String("bug", "undo", "undo, scripts or cursor")
	flag.Parse()
	balances := map[string]int64{}
	var changes []change
	file := os.Getenv("OUROTAIL_DRILL_CURSOR")
	if *bug == "cursor" {
		text, _ := os.ReadFile(file + ".state")
		_ = json.Unmarshal(text, &changes)
		for _, c := range changes {
			balances[c.Address] += c.Amount
		}
	}
	in := json.NewDecoder(os.Stdin)
	for n := 1; ; n++ {
		if *bug == "cursor" && n%20 == 0 {
			text, _ := json.Marshal(changes)
			_ = os.WriteFile(file+".state", text, 0o600)
		}
		var l line
		if more := read(in, &l); !more {
			break
		}
		if *bug == "cursor" && l.Cursor != "" {
			_ = os.WriteFile(file, []byte(l.Cursor+"\n"), 0o600)
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
			for len(changes) > 0 && changes[len(changes)-1].Slot > slot {
				last := changes[len(changes)-1]
				balances[last.Address] -= last.Amount
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

// read reads a line; false at the end.
func read(in *json.Decoder, l *line) bool {
	err := in.Decode(l)
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return err == nil
}
