// Package ordeal puts a follower through what it must survive: hundreds of kills
// of its process, at random instants and before every named step (make crash),
// and a scripted bad day with its node and its readers (make chaos). What it is
// compared with is the ledger of the generated chain, block by block.
//
// Both print the seed of what they do; the flag -seed does it again. Short forms
// run with the other tests.
package ordeal
