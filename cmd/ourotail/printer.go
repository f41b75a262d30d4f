package main

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/fatih/color"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
	"github.com/ourotail/ourotail/ledger/canon"
)

// printer writes events in one of tail's formats.
type printer struct {
	out    *bufio.Writer
	format string
	json   *json.Encoder
	stamp  *record.Stamp // for JSON; nil leaves out what it says
	line   []byte

	created, spent, rolled, faint *color.Color
	names                         map[string]string // of addresses, for pretty
}

func newPrinter(w io.Writer, format string) *printer {
	p := &printer{out: bufio.NewWriterSize(w, 1<<16), format: format}
	p.json = json.NewEncoder(p.out)
	p.created, p.spent, p.rolled, p.faint = color.New(color.FgGreen), color.New(color.FgRed), color.New(color.FgYellow, color.Bold), color.New(color.Faint)
	if !isTerminal(w) {
		for _, c := range p.colors() {
			c.DisableColor()
		}
	}
	return p
}

func (p *printer) colors() []*color.Color {
	return []*color.Color{p.created, p.spent, p.rolled, p.faint}
}

// colored has a printer use colors because what it prints goes on to a terminal.
func (p *printer) colored() {
	for _, c := range p.colors() {
		c.EnableColor()
	}
}

func (p *printer) flush() error { return p.out.Flush() }

func (p *printer) event(e *chain.UTxOEvent) error {
	switch p.format {
	case "effects":
		return p.effect(e)
	case "json":
		env := record.Of(e)
		if p.stamp != nil {
			env = p.stamp.Of(e)
		}
		return p.json.Encode(env)
	}
	return p.pretty(e)
}

// effect writes the canonical line; what no block did has none.
func (p *printer) effect(e *chain.UTxOEvent) error {
	switch {
	case e.Kind == chain.RolledBack:
		p.line = canon.AppendRolledBack(p.line[:0], e.At.Point)
	case e.Because != chain.Live:
		return nil
	case e.Kind == chain.Created:
		p.line = canon.AppendCreated(p.line[:0], e.UTxO.Ref, &e.UTxO.Out)
	case e.Kind == chain.Spent:
		p.line = canon.AppendSpent(p.line[:0], e.UTxO.Ref, &e.UTxO.Out, e.Tx)
	default:
		return nil
	}
	p.line = append(p.line, '\n')
	_, err := p.out.Write(p.line)
	return err
}

func (p *printer) pretty(e *chain.UTxOEvent) error {
	var err error
	switch e.Kind {
	case chain.RolledBack:
		_, err = p.rolled.Fprintf(p.out, "↩ fork: back to block %d (%s)\n", e.At.Height, e.At.Point)
	case chain.Idle:
		_, err = p.faint.Fprintf(p.out, "· block %d\n", e.At.Height)
	default:
		sign, c := "+", p.created
		note := ""
		if e.Kind == chain.Spent {
			sign, c = "-", p.spent
		}
		if e.Because == chain.Live && !e.TxValid {
			note = "  (script failed: collateral)"
		}
		height := e.At.Height
		if _, err = c.Fprintf(p.out, "%s %9d  %s  %28s", sign, height, p.who(e.UTxO.Out.Address), ada(e.UTxO.Out.Lovelace)); err != nil {
			return err
		}
		if _, err = p.out.WriteString(alsoHolds(&e.UTxO.Out) + note); err != nil {
			return err
		}
		_, err = p.faint.Fprintf(p.out, "  %s\n", e.UTxO.Ref)
	}
	return err
}

// who is the name given to an address, or its text shortened to one width.
func (p *printer) who(addr []byte) string {
	if name, ok := p.names[string(addr)]; ok {
		return name
	}
	const head, tail = 16, 8
	text := address.Text(addr)
	if len(text) > head+tail+1 {
		text = text[:head] + "…" + text[len(text)-tail:]
	}
	return text
}
