// Package resolve replaces every input of a block by the output it spends:
// first among the outputs born in the blocks that will be committed together,
// then in the store. What does not resolve is an error that names block,
// transaction and input, never a guess.
//
// It also turns a resolved block into the chain.AppliedBlock that the hub takes.
package resolve
