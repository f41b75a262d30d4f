package ourotail

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/ledger/canon"
	"github.com/ourotail/ourotail/query"
	"github.com/ourotail/ourotail/store"
)

// View reads the set of unspent outputs as it was when the view was opened, or at
// the point that it was opened for (Follower.ViewAt). Any
// number of goroutines may use it. It must be closed; a view that stays open for
// hours keeps hours of garbage on disk.
type View struct {
	snap  *store.Snapshot
	wound *wound // nil if it shows what the snapshot does
}

// Close gives the view up.
func (v *View) Close() { v.snap.Close() }

// Head returns the block whose state the view shows; at origin its height is
// chain.OriginHeight.
func (v *View) Head() chain.Link {
	if v.wound != nil {
		return v.wound.head
	}
	return v.snap.Head()
}

// Indexed tells whether queries by address, credential, policy and asset use an
// index. Before the end of a first sync they read the whole set.
func (v *View) Indexed() bool { return v.snap.Indexed() }

// UTxOs calls fn for every unspent output that the query wants, in ascending
// order of reference. What fn is given is its own to keep. An error of fn ends
// the reading and is returned.
func (v *View) UTxOs(ctx context.Context, q query.UTxO, fn func(*chain.UTxO) error) (err error) {
	defer damaged(&err)
	points := map[chain.Height]chain.At{}
	keys, _ := q.Keys()
	return v.each(ctx, keys, func(o *chain.Output) error {
		u, err := v.decode(o, points)
		if err != nil || !q.Match(u) {
			return err
		}
		return fn(u)
	})
}

// Get returns an unspent output; false if it is not there. It is the caller's to
// keep.
func (v *View) Get(ref chain.TxIn) (u *chain.UTxO, ok bool, err error) {
	defer damaged(&err)
	o, ok, err := v.wound.get(v.snap, ref)
	if err != nil || !ok {
		return nil, false, err
	}
	u, err = v.decode(&o, map[chain.Height]chain.At{})
	return u, err == nil, err
}

// each calls fn for every unspent output under the keys, or more, in ascending order
// of reference.
func (v *View) each(ctx context.Context, keys []chain.Source, fn func(*chain.Output) error) error {
	fn, rest := v.wound.merge(fn)
	if v.scans(keys) {
		if err := v.snap.UTxOs(ctx, chain.Source{Kind: chain.SourceAll}, fn); err != nil {
			return err
		}
		return rest()
	}
	refs, err := v.refs(ctx, keys)
	if err != nil {
		return err
	}
	for i, ref := range refs {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		o, ok, err := v.snap.Get(ref)
		if err != nil {
			return err
		}
		if ok {
			if err := fn(&o); err != nil {
				return err
			}
		}
	}
	return rest()
}

// scans tells whether the keys can only be answered by reading everything.
func (v *View) scans(keys []chain.Source) bool {
	for _, k := range keys {
		switch k.Kind {
		case chain.SourceTx, chain.SourceInput:
		case chain.SourceAll:
			return true
		default:
			if !v.Indexed() {
				return true
			}
		}
	}
	return false
}

// refs collects the references under the keys, sorted, each once.
func (v *View) refs(ctx context.Context, keys []chain.Source) ([]chain.TxIn, error) {
	var refs []chain.TxIn
	for _, k := range keys {
		if err := v.snap.UTxOs(ctx, k, func(o *chain.Output) error {
			refs = append(refs, o.Ref)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(refs, chain.TxIn.Compare)
	return slices.Compact(refs), nil
}

func (v *View) decode(o *chain.Output, points map[chain.Height]chain.At) (*chain.UTxO, error) {
	out, err := ledger.DecodeOutput(o.Era, bytes.Clone(o.Raw))
	if err != nil {
		return nil, fmt.Errorf("output %s in the store: %w", o.Ref, err)
	}
	at, known := points[o.Height]
	if !known {
		at = chain.Origin
		if o.Height > chain.OriginHeight {
			l, ok, err := v.snap.LinkAt(chain.Position{Height: o.Height})
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", o.Ref, err)
			}
			if !ok {
				return nil, fmt.Errorf("output %s: no block is kept at its height %d", o.Ref, o.Height)
			}
			at = l.At()
		}
		if len(points) > 1<<16 {
			clear(points)
		}
		points[o.Height] = at
	}
	return &chain.UTxO{Ref: o.Ref, Out: out, At: at, TxIndex: o.TxIndex}, nil
}

// Lines calls fn with the canonical line of every unspent output that the query
// wants, `txid#ix address lovelace assets datum script`, without its end, sorted
// bytewise. The line is valid within the call.
func (v *View) Lines(ctx context.Context, q query.UTxO, fn func(line []byte) error) error {
	// References ascend by number, lines by their bytes: #10 comes before #2. So
	// the lines of one transaction are sorted again.
	var lines [][]byte
	var id chain.TxID
	flush := func() error {
		slices.SortFunc(lines, bytes.Compare)
		for _, l := range lines {
			if err := fn(l); err != nil {
				return err
			}
		}
		lines = lines[:0]
		return nil
	}
	err := v.UTxOs(ctx, q, func(u *chain.UTxO) error {
		if u.Ref.ID != id {
			if err := flush(); err != nil {
				return err
			}
			id = u.Ref.ID
		}
		lines = append(lines, canon.AppendUTxO(nil, u.Ref, &u.Out))
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// Digest is what a full scan of the set comes to. Two stores that agree on it
// hold the same outputs, however they got there.
type Digest struct {
	UTxOs       int64
	Lovelace    uint64
	Accumulator string // 32 hexadecimal digits: the sum mod 2^128 over all outputs of half the SHA-256 of their lines
}

// Digest reads the whole set.
func (v *View) Digest(ctx context.Context) (d Digest, err error) {
	defer damaged(&err)
	var acc canon.Accumulator
	var line []byte
	err = v.each(ctx, []chain.Source{{Kind: chain.SourceAll}}, func(o *chain.Output) error {
		out, err := ledger.DecodeOutput(o.Era, o.Raw)
		if err != nil {
			return fmt.Errorf("output %s in the store: %w", o.Ref, err)
		}
		line = canon.AppendUTxO(line[:0], o.Ref, &out)
		acc.Add(line)
		d.UTxOs++
		d.Lovelace += out.Lovelace
		return nil
	})
	d.Accumulator = acc.String()
	return d, err
}

// damaged turns a runtime panic of the database, which does not expect damage in
// its tables, into an error that says so.
func damaged(err *error) {
	switch r := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("%w: %w", store.ErrDamaged, r)
	default:
		panic(r)
	}
}
