package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/big"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/ourotail/ourotail/chain"
)

// thousands writes a number with separators.
func thousands(n uint64) string { return humanize.BigComma(new(big.Int).SetUint64(n)) }

// ada writes lovelace as ada, in full.
func ada(lovelace uint64) string {
	return fmt.Sprintf("%s.%06d ADA", thousands(lovelace/1_000_000), lovelace%1_000_000)
}

// alsoHolds says what an output holds besides lovelace.
func alsoHolds(o *chain.TxOut) string {
	var b strings.Builder
	switch n := len(o.Assets); {
	case n == 1:
		fmt.Fprintf(&b, " + %s %s", thousands(o.Assets[0].Quantity), assetName(o.Assets[0]))
	case n > 1:
		fmt.Fprintf(&b, " + %d assets", n)
	}
	switch o.DatumKind {
	case chain.HashedDatum:
		b.WriteString(" +datum hash")
	case chain.InlineDatum:
		b.WriteString(" +datum")
	}
	if o.Script != nil {
		b.WriteString(" +script")
	}
	return b.String()
}

// assetName is an asset's name as text where it is text, with the beginning of
// its policy.
func assetName(a chain.Asset) string {
	name := hex.EncodeToString(a.Name)
	printable := len(a.Name) > 0
	for _, c := range a.Name {
		printable = printable && c > ' ' && c < 0x7f
	}
	if printable {
		name = string(a.Name)
	}
	return a.Policy.String()[:8] + "…." + name
}

// plural writes a number with what it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(uint64(n)) + " " + what + "s"
}

// quieter keeps only a logger's errors: the terminal shows something else.
func quieter(log *slog.Logger) *slog.Logger {
	return slog.New(levelHandler{log.Handler(), slog.LevelError})
}

type levelHandler struct {
	slog.Handler
	least slog.Level
}

func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.least && h.Handler.Enabled(ctx, l)
}

func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.least}
}

func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.least}
}
