// Command consumer-good reads the JSON lines of `ourotail tail` and prints the
// balance of each address when they end. It is all that a consumer needs to
// survive forks: remember where every output was created and spent, and on undo
// take back what lies above the point.
//
//	ourotail drill -- go run ./examples/consumer-good
//
// And to survive its own death: at the end of each block it keeps what it has made of
// the lines and the cursor behind them, in one file that is replaced as a whole, and
// begins with what is in there. A program with a database keeps both in one
// transaction.
package main

import (
	"bytes"
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
	Cursor string // behind the line
	Record *struct {
		Kind        string // created or spent
		LastOfBlock bool   `json:"last_of_block"`
		Output      struct {
			TransactionID string `json:"transaction_id"`
			OutputIndex   int    `json:"output_index"`
			Address       string
			Value         struct{ Coins string } // lovelace; as text, for it may not fit a float
		}
	}
}

// output is an output with the slots in which it was created and spent.
type output struct {
	Address        string
	Lovelace       uint64
	Created, Spent int64
}

const (
	before  = -1 // the first slot
	unspent = -2
)

func main() {
	outputs, err := load()
	if err != nil {
		fail(err)
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var l line
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			fail(err)
		}
		if err := take(outputs, &l); err != nil {
			fail(err)
		}
		if l.Cursor != "" && (l.Record == nil || l.Event == "seed" || l.Record.LastOfBlock) {
			if err := keep(outputs, l.Cursor); err != nil {
				fail(err)
			}
		}
	}
	balances := map[string]uint64{}
	for _, o := range outputs {
		if o.Spent == unspent {
			balances[o.Address] += o.Lovelace
		}
	}
	for address, lovelace := range balances {
		fmt.Println(address, lovelace)
	}
}

// take acts on a line.
func take(outputs map[string]*output, l *line) error {
	slot := int64(before)
	if l.Point != nil && l.Event != "seed" {
		slot = l.Point.Slot
	}
	if l.Event == "undo" {
		undo(outputs, slot)
		return nil
	}
	o := &l.Record.Output
	ref := fmt.Sprintf("%s#%d", o.TransactionID, o.OutputIndex)
	if l.Record.Kind == "spent" {
		outputs[ref].Spent = slot
		return nil
	}
	n, err := strconv.ParseUint(o.Value.Coins, 10, 64)
	outputs[ref] = &output{o.Address, n, slot, unspent}
	return err
}

// undo takes back what happened above a slot. A program that runs for long would
// also forget outputs whose spend is k blocks deep.
func undo(outputs map[string]*output, slot int64) {
	for ref, o := range outputs {
		switch {
		case o.Created > slot:
			delete(outputs, ref)
		case o.Spent > slot:
			o.Spent = unspent
		}
	}
}

// file has the cursor as its first line, and behind it the outputs.
var file = os.Getenv("OUROTAIL_DRILL_CURSOR")

func keep(outputs map[string]*output, cursor string) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(outputs)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append([]byte(cursor+"\n"), text...), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func load() (map[string]*output, error) {
	outputs := map[string]*output{}
	text, err := os.ReadFile(file)
	if file == "" || errors.Is(err, os.ErrNotExist) {
		return outputs, nil
	}
	if err != nil {
		return nil, err
	}
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return outputs, json.Unmarshal(text, &outputs)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
