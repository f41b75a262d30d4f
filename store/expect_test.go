package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

// expected is every key and value that the database must have for a model, the
// description and the head apart, with points as one entry per link.
func (w *world) expected(s *Store) map[string]string {
	want := map[string]string{}
	put := func(key, value []byte) { want[string(key)] = string(value) }
	index := func(o *chain.Output) {
		ops := opset{}
		h := s.head
		if err := ops.terms(s, &h, o, true); err != nil {
			panic(err)
		}
		for _, op := range ops.ops {
			if h.index == indexBuilding && !s.has(op.key) {
				continue // it is still to come
			}
			put(op.key, nil)
		}
	}
	output := func(o chain.Output) {
		put(appendRefKey(nil, keyOutput, o.Ref), appendOutput(nil, &o))
		index(&o)
	}
	for _, o := range w.live {
		output(o)
	}
	for i, e := range w.blocks {
		journal := i > w.base
		tx := -1
		for t := range e.Txs {
			if !e.Txs[t].ID.IsZero() {
				tx++
			}
			spent, _ := e.Tx(t)
			for n, o := range spent {
				by := appendSpender(nil, Spender{Height: e.Height, TxIndex: uint32(max(tx, 0)), Input: uint32(n), Tx: e.Txs[t].ID})
				switch {
				case journal:
					output(o)
					put(appendRefKey(nil, keyMark, o.Ref), by)
				case w.archive:
					put(appendRefKey(nil, keyGone, o.Ref), appendOutput(slices.Clone(by), &o))
				}
			}
		}
		if !journal {
			put(appendPositionKey(nil, keyPoints, e.Position()), appendLink(nil, e.Link))
			continue
		}
		var made, used uint64
		for _, o := range e.Created {
			made += o.Lovelace
		}
		for _, o := range e.Spent {
			used += o.Lovelace
		}
		put(appendPositionKey(nil, keyRecord, e.Position()), appendRecord(nil, e, segment.Of(e.Raw), made, used))
	}
	for h := range w.orphans {
		put(appendOrphanKey(nil, h), nil) // see verifyChain
	}
	return want
}

func (s *Store) has(key []byte) (found bool) {
	if err := s.db.View(func(txn *badger.Txn) (err error) {
		found, err = get(txn, key, func([]byte) error { return nil })
		return err
	}); err != nil {
		panic(err)
	}
	return found
}

// dump reads what the database has, in the same form.
func dump(s *Store) (map[string]string, error) {
	got := map[string]string{}
	err := s.db.View(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			key := it.Item().KeyCopy(nil)
			value, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			switch key[0] {
			case keyMeta, keyHead:
				continue
			case keyOrphan:
				value = nil
			case keyRecord:
				if value, err = placeless(value); err != nil {
					return err
				}
			case keyPoints:
				p, err := decodePack(key, value)
				if err != nil {
					return err
				}
				for i := range p.len() {
					got[string(appendPositionKey(nil, keyPoints, p.position(i)))] = string(appendLink(nil, p.link(i)))
				}
				continue
			}
			got[string(key)] = string(value)
		}
		return nil
	})
	return got, err
}

func differ(got, want map[string]string) error {
	var diff []string
	for k, v := range want {
		if g, ok := got[k]; !ok {
			diff = append(diff, fmt.Sprintf("missing %c %x", k[0], k[1:]))
		} else if g != v {
			diff = append(diff, fmt.Sprintf("%c %x is %x, want %x", k[0], k[1:], g, v))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			diff = append(diff, fmt.Sprintf("extra %c %x", k[0], k[1:]))
		}
	}
	if len(diff) == 0 {
		return nil
	}
	slices.Sort(diff)
	return fmt.Errorf("%d keys differ: %s", len(diff), diff[:min(len(diff), 8)])
}

// verify compares all that the store says with the model.
func (w *world) verify(s *Store) error {
	got, err := dump(s)
	if err != nil {
		return err
	}
	if err := differ(got, w.expected(s)); err != nil {
		return err
	}
	var lovelace uint64
	for _, o := range w.live {
		lovelace += o.Lovelace
	}
	marks := 0
	for i, e := range w.blocks {
		if i > w.base {
			marks += len(e.Spent)
		}
	}
	st := s.State()
	switch {
	case st.Head != w.head():
		return fmt.Errorf("head %v, want %v", st.Head, w.head())
	case st.Highest != w.highest:
		return fmt.Errorf("highest %d, want %d", st.Highest, w.highest)
	case st.UTxOs != int64(len(w.live)) || st.Lovelace != lovelace:
		return fmt.Errorf("%d outputs with %d, want %d with %d", st.UTxOs, st.Lovelace, len(w.live), lovelace)
	case st.Marks != int64(marks):
		return fmt.Errorf("%d marks, want %d", st.Marks, marks)
	case st.Floor != w.at(w.base).At():
		return fmt.Errorf("floor %v, want %v", st.Floor, w.at(w.base).At())
	}
	if err := w.verifyLookups(s); err != nil {
		return err
	}
	return w.verifyChain(s)
}

// verifyLookups asks for every output, live or not.
func (w *world) verifyLookups(s *Store) error {
	ask := func(o chain.Output, live bool) error {
		got := chain.Output{Ref: o.Ref}
		missing, err := s.Outputs([]*chain.Output{&got})
		if err != nil {
			return err
		}
		if (missing == -1) != live {
			return fmt.Errorf("output %s: missing %d, live %v", o.Ref, missing, live)
		}
		if o.InBatch = false; live && !sameOutput(got, o) {
			return fmt.Errorf("output %s is %+v, want %+v", o.Ref, got, o)
		}
		return nil
	}
	for _, o := range w.live {
		if err := ask(o, true); err != nil {
			return err
		}
	}
	for _, e := range w.blocks {
		for _, o := range e.Spent {
			if err := ask(o, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameOutput(a, b chain.Output) bool {
	raw := bytes.Equal(a.Raw, b.Raw)
	a.Raw, b.Raw = nil, nil
	return raw && fmt.Sprint(a) == fmt.Sprint(b)
}

// verifyChain asks for links, points, orphans and rebuilt blocks.
func (w *world) verifyChain(s *Store) error {
	for _, n := range []int{1, len(w.blocks), len(w.blocks) + 3} {
		links, whole, err := s.Links(n)
		if err != nil {
			return err
		}
		if whole != (n >= len(w.blocks)) || len(links) != min(n, len(w.blocks)) {
			return fmt.Errorf("asked for %d links of %d: got %d, whole %v", n, len(w.blocks), len(links), whole)
		}
		for i, l := range links {
			if want := w.at(len(w.blocks) - len(links) + i); l != want {
				return fmt.Errorf("link %d of %d is %v, want %v", i, len(links), l, want)
			}
		}
	}
	var e chain.Effects
	for i, b := range w.blocks {
		if far := i - w.base; far < -3 && i != int(w.serial)%len(w.blocks) {
			continue // one of the old ones is enough each time
		}
		if l, ok, err := s.LinkAt(b.Position()); err != nil || !ok || l != b.Link {
			return fmt.Errorf("link at %v: %v %v %w", b.Position(), l, ok, err)
		}
		if l, ok, err := s.Find(b.Point); err != nil || !ok || l != b.Link {
			return fmt.Errorf("find %v: %v %v %w", b.Point, l, ok, err)
		}
		if _, ok, err := s.Find(chain.Point{Slot: b.Point.Slot, Hash: chain.Hash{1}}); err != nil || ok {
			return fmt.Errorf("found a hash that is not ours: %w", err)
		}
		err := s.Effects(b.Position(), &e)
		if i <= w.base {
			if err == nil {
				return fmt.Errorf("block %v still has a record", b.At())
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := sameBlock(&e, b); err != nil {
			return fmt.Errorf("block %v: %w", b.At(), err)
		}
		v := s.Snapshot()
		txs, err := v.Txs(b.Position())
		v.Close()
		if err != nil || !slices.Equal(txs, b.Txs) {
			return fmt.Errorf("block %v: transactions %v, want %v, %w", b.At(), txs, b.Txs, err)
		}
	}
	v := s.Snapshot()
	defer v.Close()
	links, err := v.Orphans()
	if err != nil {
		return err
	}
	for _, l := range links {
		want := w.orphans[l.Point.Hash]
		if want == nil || want.Link != l {
			return fmt.Errorf("an orphan that should not be: %v", l)
		}
		if err := v.Orphan(l.Point.Hash, &e); err != nil {
			return err
		}
		if err := sameBlock(&e, want); err != nil {
			return fmt.Errorf("undone block %v: %w", l.At(), err)
		}
	}
	if n := len(links); n != len(w.orphans) {
		return fmt.Errorf("%d orphans, want %d", n, len(w.orphans))
	}
	return w.verifyFiles(s)
}

// verifyFiles asks whether the files of blocks hold what is wanted, and no file
// is left of which nothing is.
func (w *world) verifyFiles(s *Store) error {
	wanted := map[uint32]bool{}
	note := func(p segment.Place) { wanted[p.File] = true }
	if err := s.db.View(func(txn *badger.Txn) error {
		return errors.Join(
			each(txn, []byte{keyRecord}, func(_, b []byte) error {
				_, raw, err := recordStart(b)
				note(raw)
				return err
			}),
			each(txn, []byte{keyOrphan}, func(_, b []byte) error {
				o, err := readOrphan(b)
				note(o.raw)
				note(o.contents)
				return err
			}))
	}); err != nil {
		return err
	}
	files, err := segment.List(filepath.Join(s.opts.Dir, "db"))
	if err != nil {
		return err
	}
	newest := uint32(0)
	for n := range files {
		newest = max(newest, n)
	}
	for n := range files {
		if _, waits := s.unwanted[n]; !wanted[n] && n != newest && !waits {
			return fmt.Errorf("nobody wants anything of %s, and it is there", segment.Name(n))
		}
	}
	return s.Verify(context.Background())
}

// placeless is a record that says what the block's bytes are, not where.
func placeless(b []byte) ([]byte, error) {
	r := reader{b: b}
	l, p := r.link(), r.place()
	if r.bad {
		return nil, r.end("a journal record")
	}
	p.File, p.Offset = 0, 0
	return append(appendPlace(appendLink(nil, l), p), r.b...), nil
}

func sameBlock(got, want *chain.Effects) error {
	same := got.Link == want.Link && bytes.Equal(got.Raw, want.Raw) && slices.Equal(got.Txs, want.Txs)
	list := func(a, b []chain.Output) bool {
		return slices.EqualFunc(a, b, func(x, y chain.Output) bool {
			y.InBatch = false
			return sameOutput(x, y)
		})
	}
	if !same || !list(got.Spent, want.Spent) || !list(got.Created, want.Created) {
		return fmt.Errorf("it is %+v, want %+v", got, want)
	}
	return nil
}

// view is what a snapshot must show for as long as it is open.
type view struct {
	snap *Snapshot
	live map[chain.TxIn]chain.Output
}

// verify compares every kind of query, by index or scan.
func (v view) verify() error {
	sources := map[chain.Source]struct{}{{Kind: chain.SourceAll}: {}}
	for _, o := range v.live {
		for _, src := range testSources(o.Raw[0], o.Raw[1]) {
			sources[src] = struct{}{}
		}
		sources[chain.Source{Kind: chain.SourceTx, Key: string(o.Ref.ID[:])}] = struct{}{}
		sources[chain.Source{Kind: chain.SourceInput, Key: string(o.Ref.AppendKey(nil))}] = struct{}{}
	}
	for _, a := range []byte{1, 3, 4} { // also what may not be there
		for _, src := range testSources(a, 7) {
			sources[src] = struct{}{}
		}
	}
	ordered := slices.SortedFunc(maps.Keys(sources), func(a, b chain.Source) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	for _, src := range ordered {
		got := map[chain.TxIn]bool{}
		if err := v.snap.UTxOs(context.Background(), src, func(o *chain.Output) error {
			if want, ok := v.live[o.Ref]; !ok || !sameOutput(*o, want) {
				return fmt.Errorf("it shows %+v, want %+v", *o, want)
			}
			if got[o.Ref] {
				return fmt.Errorf("it shows %s twice", o.Ref)
			}
			got[o.Ref] = true
			return nil
		}); err != nil {
			return fmt.Errorf("source %v: %w", src, err)
		}
		for ref, o := range v.live {
			if want := belongs(o, src); want != got[ref] {
				return fmt.Errorf("source %v: output %s shown %v, want %v", src, ref, got[ref], want)
			}
		}
	}
	return nil
}

func belongs(o chain.Output, src chain.Source) bool {
	switch src.Kind {
	case chain.SourceAll:
		return true
	case chain.SourceTx:
		return src.Key == string(o.Ref.ID[:])
	case chain.SourceInput:
		return src.Key == string(o.Ref.AppendKey(nil))
	}
	return slices.Contains(testSources(o.Raw[0], o.Raw[1]), src)
}
