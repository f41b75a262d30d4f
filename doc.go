// Package ourotail follows a Cardano node over its local socket, keeps the set
// of unspent outputs with every spend resolved, and tells what happens: outputs
// created and spent, transactions, blocks, forks.
//
// # Following
//
// Open prepares a data directory; Close ends it. Between the two, following goes on
// in the background from the first loop on:
//
//	f, err := ourotail.Open(ctx, cfg)
//	...
//	defer f.Close()
//	for ev, err := range f.UTxOs(ctx, q, ourotail.Existing()) {
//
// UTxOs, Txs, Blocks and Tips are loops; options say where one begins and what it
// gets. WatchTx and WatchOutput tell what becomes of one transaction. Programs that
// want to drive following themselves call Run; those that want to poll, or be woken,
// use the Subscribe methods.
//
// A node that is not there, or not where SocketPath says, is waited for: nothing is
// yielded and nothing fails. Give Config a Logger, which is told, or ask Health.
//
// # Forks
//
// A fork is an event, RolledBack: what lies above the point that it names has not
// happened. Whoever cannot take anything back asks for Confirmations or NoRollback
// and hears later.
//
// # Going on where one was
//
// Every event has a cursor, a line of text. Keep that of the last event you have dealt
// with, together with what you made of it, and give it to Resume: nothing is missed and
// nothing comes twice, whatever was killed and whichever forks came meanwhile. A
// reader that is too slow ends with an error; with AutoResume it just goes on.
//
// # Reading the set
//
// View reads the set as it is, ViewAt as it was behind any block within k. OpenDir
// reads a data directory that nobody is following into.
package ourotail
