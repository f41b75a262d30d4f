package hub

import (
	"fmt"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/mailbox"
)

// latest is the subscriptions for one value of which only the newest matters.
type latest[T any] struct {
	subs  map[*mailbox.Latest[T]]struct{}
	value T
	known bool
}

// set gives the value to everybody.
func (l *latest[T]) set(h *Hub, v T) {
	l.value, l.known = v, true
	for s := range l.subs {
		s.OfferBuffered(v)
		h.out = append(h.out, s)
	}
}

// end takes everybody out and ends them.
func (l *latest[T]) end(h *Hub, f func(*mailbox.Latest[T])) {
	for s := range l.subs {
		f(s)
		h.out = append(h.out, s)
	}
	clear(l.subs)
}

// subscribeLatest registers a subscription and gives it the value there is.
func subscribeLatest[T any](h *Hub, l *latest[T], kind Kind) (Subscription[T], error) {
	if !h.cfg.Capabilities.Kinds[kind] {
		return nil, fmt.Errorf("subscribing to the %v: %w: this provider does not serve it", kind, ErrUnsupported)
	}
	var box *mailbox.Latest[T]
	box = mailbox.NewLatest[T](func(error) {
		h.mu.Lock()
		delete(l.subs, box)
		h.mu.Unlock()
	})
	h.mu.Lock()
	if err := h.failed; err != nil {
		h.mu.Unlock()
		return nil, fmt.Errorf("subscribing to the %v: %w", kind, err)
	}
	if l.subs == nil {
		l.subs = map[*mailbox.Latest[T]]struct{}{}
	}
	l.subs[box] = struct{}{}
	if l.known {
		box.OfferBuffered(l.value)
		h.out = append(h.out, box)
	}
	h.unlock()()
	return box, nil
}

// SubscribeTip registers a subscription for the hub's tip. It gives the present
// one at once, origin if there is no block yet.
func (h *Hub) SubscribeTip() (Subscription[chain.Tip], error) {
	return subscribeLatest(h, &h.tips, Tips)
}

func (h *Hub) tipChanged() { h.tips.set(h, h.tip) }

// ProtocolParams are the protocol parameters in force, as the provider has them.
type ProtocolParams struct {
	At    chain.At // the point they were read at
	Epoch uint64
	Raw   []byte // as the node encodes them; the era tells how to read it
	Era   chain.Era
}

// SubscribeParams registers a subscription for the protocol parameters. It
// gives the present ones at once if they are known.
func (h *Hub) SubscribeParams() (Subscription[ProtocolParams], error) {
	return subscribeLatest(h, &h.params, Params)
}

// SetParams hands in the protocol parameters.
func (h *Hub) SetParams(p ProtocolParams) { h.lockedFlush(func() { h.params.set(h, p) }) }

// ParamsFailed says that the parameters could not be read: their subscribers
// fail with the cause, nobody else.
func (h *Hub) ParamsFailed(cause error) {
	h.lockedFlush(func() {
		h.params.known = false
		h.params.end(h, func(s *mailbox.Latest[ProtocolParams]) { s.FailBuffered(cause) })
	})
}
