// Package follow is the loop: it keeps a connection to a node, walks and
// resolves each block, commits, and publishes, strictly in the order of the
// chain. It owns order, reconnects and the publish lock, and knows its store
// and its node only as interfaces.
//
// # Order of things
//
// A block becomes visible in four steps: it joins the open batch (walked, its
// parent checked, its inputs resolved), the batch is committed (durable), the
// hub buffers its events, the mailboxes are flushed. Commit and buffering happen
// under the publish lock, flushing after it. So whoever holds that lock, as a
// registration does, sees a store whose head is the hub's tip.
//
// # Failure
//
// Everything before the commit is in memory only: a crash loses nothing that
// the node will not send again. A transient error (the node went away, said
// nonsense, is behind us) ends the session; the next one starts with an
// intersection at the committed head. Errors that a person must see to, such as
// an input that does not resolve, end Run.
package follow
