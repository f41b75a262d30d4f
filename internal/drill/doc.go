// Package drill puts a consumer of ourotail's JSON lines through scripted days:
// forks of every depth, restarts and kills of ourotail, a node that restarts,
// freezes or falls silent. At the end of each day it compares the balances that
// the consumer states with those of the chain's own ledger.
//
// The drill holds the consumer's standard input for the whole day, while the
// process that writes the lines is stopped, killed and started again. That
// process (Tail) is told the last block that was delivered whole; if a fork undid
// it meanwhile the first line is the undo that the consumer is owed. So what
// the consumer reads is one unbroken stream, as of a tail that never ended.
//
// Before a consumer is blamed the stream itself is folded by the rules and must
// come to the truth; otherwise the fault is ourotail's, and the result says so.
package drill
