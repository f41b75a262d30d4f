// Package eras turns slots into times, times into slots, and both into epochs.
//
// A chain's slots have one length and its epochs one number of slots for as
// long as an era lasts; both may change with the next. Summaries is the list of
// such stretches. A node answers with it (consensus: HardFork.History.Summary,
// the answer to GetInterpreter), and ledger.Genesis.Eras makes one from genesis
// files. This is the only place that converts.
//
// # The horizon
//
// A node's list ends at the horizon: how far ahead of its ledger it is certain
// that no hard fork changes the length of a slot, a few days on a public
// network. What lies beyond cannot be converted yet, and is a *HorizonError. A
// list from genesis files has no horizon: it takes the lengths of Shelley for
// all later eras, which is how every public network has been so far.
package eras
