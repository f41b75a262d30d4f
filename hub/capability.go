package hub

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// Kind is a kind of subscription.
type Kind uint8

// The kinds.
const (
	UTxOs Kind = iota
	Txs
	Blocks
	Tips
	Params
	Statuses
	kindCount
)

var kindNames = [kindCount]string{"output", "transaction", "block", "tip", "parameter", "status"}

// String names the kind.
func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Capabilities are what a provider can do, declared once (contract 3.14).
type Capabilities struct {
	// Kinds are the kinds of subscription served.
	Kinds map[Kind]bool
	// Partial tells that blocks cover only what was probed, and that heights may
	// be skipped. A complete provider hands over every block whole.
	Partial bool
	// Indexed are the source kinds by which existing outputs are found without a
	// scan; of a partial provider those it can probe.
	Indexed query.Kinds
	// Scan tells that a seed which no index answers can be read by looking at
	// every output.
	Scan bool
	// Replay tells that subscriptions may start at origin or after a point.
	Replay bool
	// Horizon is the deepest rollback, in blocks below the highest height ever
	// applied; NoHorizon if the provider never rolls back.
	Horizon chain.Height
	// MaxConfirmations is the greatest depth a subscription may ask for.
	MaxConfirmations chain.Height
	// Idle tells that quiet blocks are signalled to who asks for it.
	Idle bool
}

// NoHorizon declares that there are no rollbacks.
const NoHorizon chain.Height = -1

// Level says how a subscription would be served.
type Level uint8

// The levels.
const (
	Unsupported Level = iota // refused
	Unindexed                // its seed needs a look at every output
	Indexed
)

// Support is what the provider answers to a query and its options.
type Support struct {
	Level  Level
	Reason string // of Unsupported, and of Unindexed
}

func unsupported(format string, args ...any) Support {
	return Support{Unsupported, fmt.Sprintf(format, args...)}
}

// horizon is the depth of possible rollbacks, 0 without any.
func (c *Capabilities) horizon() chain.Height { return max(c.Horizon, 0) }

// depth is the depth at which a subscription is served.
func (c *Capabilities) depth(o *Options) chain.Height {
	if o.NoRollback {
		return max(o.Confirmations, c.horizon())
	}
	return o.Confirmations
}

// Support decides how a subscription would be served. Subscribing is refused
// exactly where it says so; only what depends on the moment (a depth beyond
// the blocks at hand, a start out of reach) is refused besides. The keys are
// those of an output query, or the sources of a transaction query's keys, where
// SourceAll stands for what has none; nil for other kinds.
func (c *Capabilities) Support(kind Kind, keys []chain.Source, o Options) Support {
	if !c.Kinds[kind] {
		return unsupported("this provider serves no %v subscriptions", kind)
	}
	if kind > Blocks {
		return Support{Level: Indexed}
	}
	switch {
	case o.Confirmations < 0:
		return unsupported("%d confirmations", o.Confirmations)
	case c.depth(&o) > c.MaxConfirmations:
		return unsupported("depth %d is more than the %d this provider offers", c.depth(&o), c.MaxConfirmations)
	case o.Start != Tip && !c.Replay:
		return unsupported("this provider has no history to start from")
	case kind != UTxOs && o.Seed != NoSeed:
		return unsupported("%v subscriptions have no seed", kind)
	case kind == UTxOs && o.Events > SpentOnly:
		return unsupported("no such events")
	case o.Bound < Unbounded:
		return unsupported("a bound of %d", o.Bound)
	}
	if c.Partial {
		if kind == Blocks {
			return unsupported("this provider does not see whole blocks")
		}
		for _, k := range keys {
			if !c.Indexed.Has(k.Kind) {
				return unsupported("this provider cannot examine blocks for what is asked for")
			}
		}
	}
	if kind == UTxOs && o.seeds() {
		for _, k := range keys {
			if c.Indexed.Has(k.Kind) {
				continue
			}
			if !c.Scan {
				return unsupported("existing outputs cannot be found by this query")
			}
			if !o.AcceptScan {
				return unsupported("the seed needs a scan of every output, which was not accepted")
			}
			return Support{Unindexed, "the seed needs a scan of every output"}
		}
	}
	return Support{Level: Indexed}
}

// SupportUTxO decides how an output query would be served.
func (c *Capabilities) SupportUTxO(q query.UTxO, o Options) Support {
	keys, _ := c.utxoKeys(q)
	return c.Support(UTxOs, keys, o)
}

// SupportTx decides how a transaction query would be served.
func (c *Capabilities) SupportTx(q query.Tx, o Options) Support {
	keys, _ := c.txKeys(q)
	return c.Support(Txs, txSources(keys), o)
}

// utxoKeys are the keys by which a query is served: where there is a choice,
// those that are indexed.
func (c *Capabilities) utxoKeys(q query.UTxO) (keys []chain.Source, exact bool) {
	if keys, exact, ok := q.KeysIn(c.Indexed); ok {
		return keys, exact
	}
	return q.Keys()
}

func (c *Capabilities) txKeys(q query.Tx) (keys []query.TxKey, exact bool) {
	if c.Partial {
		if keys, exact, ok := q.KeysIn(c.Indexed); ok {
			return keys, exact
		}
	}
	return q.Keys()
}

// txSources are the sources of a transaction query's keys.
func txSources(keys []query.TxKey) []chain.Source {
	out := make([]chain.Source, len(keys))
	for i, k := range keys {
		out[i], _ = k.Source()
	}
	return out
}
