// Command consumer-good reads the JSON lines of `ourotail tail` and prints the
// balance of each address when they end. It is all that a consumer needs to
// survive forks: remember where every output was created and spent, and on undo
// take back what lies above the point.
//
//	ourotail drill -- go run ./examples/consumer-good
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// line is what it reads of a line.
type line struct {
	Event  string // apply, undo, or seed for what existed before the first block
	Point  *struct{ Slot int64 }
	Record struct {
		Kind   string // created or spent
		Output struct {
			TransactionID string `json:"transaction_id"`
			OutputIndex   int    `json:"output_index"`
			Address       string
			Value         struct{ Coins string } // lovelace; as text, for it may not fit a float
		}
	}
}

// output is an output with the slots in which it was created and spent.
type output struct {
	address        string
	lovelace       uint64
	created, spent int64
}

const (
	before  = -1 // the first slot
	unspent = -2
)

func main() {
	outputs := map[string]*output{}
	for in := json.NewDecoder(os.Stdin); ; {
		var l line
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fail(err)
		}
		slot := int64(before)
		if l.Point != nil && l.Event != "seed" {
			slot = l.Point.Slot
		}
		o := &l.Record.Output
		ref := fmt.Sprintf("%s#%d", o.TransactionID, o.OutputIndex)
		switch {
		case l.Event == "undo":
			undo(outputs, slot)
		case l.Record.Kind == "created":
			n, err := strconv.ParseUint(o.Value.Coins, 10, 64)
			if err != nil {
				fail(err)
			}
			outputs[ref] = &output{o.Address, n, slot, unspent}
		case l.Record.Kind == "spent":
			outputs[ref].spent = slot
		}
	}
	balances := map[string]uint64{}
	for _, o := range outputs {
		if o.spent == unspent {
			balances[o.address] += o.lovelace
		}
	}
	for address, lovelace := range balances {
		fmt.Println(address, lovelace)
	}
}

// undo takes back what happened above a slot. A program that runs for long would
// also forget outputs whose spend is k blocks deep.
func undo(outputs map[string]*output, slot int64) {
	for ref, o := range outputs {
		switch {
		case o.created > slot:
			delete(outputs, ref)
		case o.spent > slot:
			o.spent = unspent
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
