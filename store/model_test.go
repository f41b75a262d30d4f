package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

// TestModel drives a store and a plain map through commits of every kind, deep
// and shallow rollbacks, reopenings, snapshots and index builds, and compares
// every key after every step. The memtable is so small that batches are split
// and single blocks go through the redo log.
func TestModel(t *testing.T) {
	for name, mem := range map[string]int64{"one transaction": 1 << 20, "tiny transactions": 1 << 15} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { onModel(t, mem, (*machine).run) })
		})
	}
}

type machine struct {
	t     *rapid.T
	w     *world
	s     *Store
	opts  Options
	views []view
}

// onModel runs a test on a machine with a store that holds the genesis outputs.
func onModel(t *rapid.T, mem int64, test func(m *machine)) {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	archive := rapid.Bool().Draw(t, "archive")
	k := chain.Height(rapid.IntRange(1, 8).Draw(t, "k"))
	m := &machine{
		t: t, w: newWorld(k, archive, rapid.IntRange(0, 5).Draw(t, "genesis")),
		opts: Options{Dir: dir, Magic: 42, K: k, Archive: archive, Terms: testTerms, memTable: mem, noSync: true},
	}
	m.open()
	defer func() { m.close() }()
	if err := m.s.Genesis(m.w.genesis); err != nil {
		t.Fatal(err)
	}
	test(m)
}

func (m *machine) run() {
	m.t.Repeat(map[string]func(*rapid.T){
		"":         func(*rapid.T) { m.check() },
		"commit":   m.commit,
		"catch up": m.catchUp,
		"forth":    m.commit,
		"rollback": m.rollback,
		"refused":  m.refused,
		"reopen":   func(*rapid.T) { m.close(); m.open() },
		"view":     m.view,
		"index":    m.index,
	})
}

func (m *machine) draw(t *rapid.T) chooser {
	return func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) }
}

func (m *machine) open() {
	s, err := Open(m.opts)
	if err != nil {
		m.t.Fatal(err)
	}
	m.s = s
}

func (m *machine) close() {
	for _, v := range m.views {
		v.snap.Close()
	}
	m.views = nil
	if err := m.s.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) check() {
	if err := m.w.verify(m.s); err != nil {
		m.t.Fatal(err)
	}
	for _, v := range m.views {
		if err := v.verify(); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *machine) commit(t *rapid.T) {
	m.take(t, m.w.batch(rapid.IntRange(1, 5).Draw(t, "blocks"), func(int) bool { return true }, m.draw(t)))
}

// catchUp commits blocks of which some are too far from the tip for a record.
func (m *machine) catchUp(t *rapid.T) {
	n := rapid.IntRange(1, 12).Draw(t, "blocks")
	far := rapid.IntRange(0, n).Draw(t, "far")
	odd := rapid.IntRange(0, 9).Draw(t, "odd") == 0 // a tip that ran away inside the batch
	m.take(t, m.w.batch(n, func(i int) bool { return i >= far || odd && i%2 == 0 }, m.draw(t)))
}

func (m *machine) take(t *rapid.T, blocks []*chain.Effects) {
	if err := m.s.Commit(blocks); err != nil {
		t.Fatal(err)
	}
	m.w.commit(blocks)
}

func (m *machine) rollback(t *rapid.T) {
	to := rapid.IntRange(m.w.floor(), len(m.w.blocks)-1).Draw(t, "to")
	if err := m.s.Rollback(context.Background(), m.w.at(to).Point); err != nil {
		t.Fatal(err)
	}
	for len(m.w.blocks) > to+1 {
		m.w.undo()
	}
}

// refused asks for what must be refused and change nothing.
func (m *machine) refused(t *rapid.T) {
	if to := m.w.floor() - 1; to >= -1 {
		err := m.s.Rollback(context.Background(), m.w.at(rapid.IntRange(-1, to).Draw(t, "below")).Point)
		var floor *FloorError
		if !errors.Is(err, ErrBelowFloor) || !errors.As(err, &floor) || floor.Floor != m.w.at(m.w.base).At() {
			t.Fatalf("rollback below the floor: %v", err)
		}
	}
	p := m.w.head().Point
	p.Hash = m.w.hash()
	if err := m.s.Rollback(context.Background(), p); !errors.Is(err, ErrUnknownPoint) {
		t.Fatalf("rollback to nowhere: %v", err)
	}
	e := m.w.batch(1, func(int) bool { return true }, m.draw(t))[0]
	switch e.Parent = m.w.hash(); {
	case len(m.w.blocks) == 0:
		e.Height += 2
	}
	if err := m.s.Commit([]*chain.Effects{e}); !errors.Is(err, ErrNotNext) {
		t.Fatalf("commit of a block that does not follow: %v", err)
	}
	if err := m.s.Genesis(nil); !errors.Is(err, ErrNotEmpty) {
		t.Fatalf("second genesis: %v", err)
	}
}

func (m *machine) view(*rapid.T) {
	if len(m.views) == 2 {
		m.views[0].snap.Close()
		m.views = m.views[1:]
	}
	m.views = append(m.views, view{m.s.Snapshot(), maps.Clone(m.w.live)})
}

// index builds some or all of the indexes.
func (m *machine) index(t *rapid.T) {
	if err := buildSome(m.s, rapid.IntRange(1, 20).Draw(t, "slices")); err != nil {
		t.Fatal(err)
	}
}
