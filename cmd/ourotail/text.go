package main

import (
	"math/big"

	"github.com/dustin/go-humanize"
)

// thousands writes a number with separators.
func thousands(n uint64) string { return humanize.BigComma(new(big.Int).SetUint64(n)) }
