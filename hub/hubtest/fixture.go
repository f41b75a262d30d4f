package hubtest

import (
	"context"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// Provider is what serves subscriptions. A subscription for outputs that asks
// for a seed names hub.SeedLater; the provider reads it.
type Provider interface {
	Capabilities() hub.Capabilities
	SubscribeUTxOs(ctx context.Context, q query.UTxO, o hub.Options) (hub.Stream[chain.UTxOEvent], error)
	SubscribeTxs(q query.Tx, o hub.Options) (hub.Stream[chain.TxEvent], error)
	SubscribeBlocks(q query.Block, o hub.Options) (hub.Stream[chain.BlockEvent], error)
	SubscribeTips() (hub.Subscription[chain.Tip], error)
	SubscribeParams() (hub.Subscription[hub.ProtocolParams], error)
	SubscribeStatus(id chain.TxID) (hub.Subscription[hub.TxStatus], error)
	// CloseSubscriptions ends all of them cleanly.
	CloseSubscriptions()
}

// Fixture is a provider and the means to make its chain move. Its methods
// return once the provider has published what they did, so that what a
// subscription must get is in its mailbox.
type Fixture interface {
	Provider
	// Submit has a transaction included in a block and returns its id. The fixture
	// adds an input of its own where the transaction spends nothing. An error that
	// wraps errors.ErrUnsupported says that it cannot make such a transaction.
	Submit(tx Tx) (chain.TxID, error)
	// Tick adds so many blocks without any of the suite's transactions.
	Tick(n int) error
	// Fork takes the newest n blocks back and adds n+1 others without them.
	// errors.ErrUnsupported if the chain of this provider cannot fork.
	Fork(n int) error
	// Set returns the unspent outputs that a query wants, from another source than
	// the provider's.
	Set(q query.UTxO) ([]*chain.UTxO, error)
	// Close ends the provider.
	Close() error
}

// Tx is a transaction to be made.
type Tx struct {
	Spend []chain.TxIn // outputs of earlier transactions
	Pay   []Pay        // outputs, in order
	// Fails makes its scripts fail: it spends as collateral what it would spend and
	// makes only the last of Pay, as its collateral return, with that one's index.
	Fails bool
}

// Pay is an output to be made.
type Pay struct {
	Address  []byte
	Lovelace uint64
}
