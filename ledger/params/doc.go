// Package params reads the protocol parameters that a node's ledger answers
// with: what a transaction costs, how large things may be, deposits, cost
// models, voting thresholds. Fractions stay fractions and integers integers;
// nothing is ever a float.
//
// The names in JSON are those of cardano-cli's query protocol-parameters where
// that has one, so that what reads the one reads the other; but fractions are
// text, "577/10000", where cardano-cli rounds.
package params
