// Package reject puts into words why a ledger refused a transaction.
//
// A refusal is a list of failures, each inside the rules that led to it: in
// Conway LEDGER, UTXOW, UTXO. They are numbers on the wire; the names here are
// those of cardano-ledger's constructors (the EncCBOR instances in
// eras/*/impl/src/Cardano/Ledger/*/Rules), so that what a person reads can be
// looked up. What is not known is shown as it came: nothing is left out.
package reject
