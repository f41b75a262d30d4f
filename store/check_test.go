package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

func checkDir(t *testing.T, dir string) *Checked {
	t.Helper()
	before := contentsOf(t, dir)
	c, err := Check(t.Context(), CheckOptions{Dir: dir, Terms: testTerms,
		Output: func(o *chain.Output, _ bool) error {
			if len(o.Raw) < 10 {
				return errors.New("it does not decode")
			}
			return nil
		},
		Block: func(l chain.Link, raw []byte) error {
			for i, b := range raw { // as the world makes them
				if b != byte(i)^l.Point.Hash[0] {
					return fmt.Errorf("byte %d is not of a block with this hash", i)
				}
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if after := contentsOf(t, dir); after != before {
		t.Error("checking changed the files")
	}
	return c
}

// contentsOf is names and bytes of a store's files.
func contentsOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	for _, pattern := range []string{"db/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(filepath.Base(file))
			out.Write(b)
		}
	}
	return out.String()
}

// TestCheckFindsNothing: no moment of a store's life has a finding, closed or
// killed, with indexes built, half built or not, pruned or an archive.
func TestCheckFindsNothing(t *testing.T) {
	for seed := range uint64(3) {
		sc := newScript(seed)
		opts := sc.options(filepath.Join(t.TempDir(), "live"))
		s := mustOpen(t, opts)
		if err := s.Genesis(sc.w.genesis); err != nil {
			t.Fatal(err)
		}
		for n := range 24 {
			op := sc.next()
			if err := op.run(s, sc.w); err != nil {
				t.Fatal(err)
			}
			sc.apply(op, op.steps())
			if n == 12 {
				halfBuilt(t, s)
			}
			if n%6 != 5 {
				continue
			}
			dead := filepath.Join(t.TempDir(), "dead")
			copyLive(t, opts.Dir, dead)
			if n%12 == 5 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{dead, opts.Dir} {
				if dir == opts.Dir && n%12 != 5 {
					continue
				}
				c := checkDir(t, dir)
				if len(c.Findings) > 0 || !c.Read {
					t.Fatalf("seed %d, operation %d: %+v", seed, n, c.Findings)
				}
				if c.State.Head != sc.w.head() || c.Links != int64(len(sc.w.blocks)) || c.State.UTxOs != int64(len(sc.w.live)) || c.Orphans != int64(len(sc.w.orphans)) {
					t.Errorf("seed %d, operation %d: it read %+v", seed, n, c)
				}
			}
			if n%12 == 5 {
				s = mustOpen(t, opts)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckNamesTheDamage damages every kind of record through the database, so
// that no checksum shows it, and looks for the finding that names it.
func TestCheckNamesTheDamage(t *testing.T) {
	const seed = 3 // an archive
	sc := newScript(seed)
	built := sc.options(filepath.Join(t.TempDir(), "live"))
	built.memTable = 1 << 16
	s := mustOpen(t, built)
	if err := s.Genesis(sc.w.genesis); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 30 || len(s.links) < 3 || s.head.marks < 2 || s.head.link.Boundary; n++ {
		op := sc.next()
		if err := op.run(s, sc.w); err != nil {
			t.Fatal(err)
		}
		sc.apply(op, op.steps())
	}
	if err := s.BuildIndexes(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// first is a key of a kind, at the place-th of them; its value is copied.
	nth := func(t *testing.T, s *Store, kind byte, place int, like func(k, v []byte) bool) (key, value []byte) {
		t.Helper()
		if err := s.db.View(func(txn *badger.Txn) error {
			it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{kind}})
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				k := it.Item().KeyCopy(nil)
				v, err := it.Item().ValueCopy(nil)
				if err != nil {
					return err
				}
				if like != nil && !like(k, v) {
					continue
				}
				key, value = k, v
				if place--; place < 0 {
					return nil
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if key == nil {
			t.Fatalf("there is no %c", kind)
		}
		return key, value
	}
	live := func(s *Store) func(k, v []byte) bool {
		return func(k, _ []byte) bool {
			v := s.Snapshot()
			defer v.Close()
			_, ok, err := v.Get(chain.TxInFromKey(k[1:]))
			return ok && err == nil
		}
	}
	marked := func(s *Store) func(k, v []byte) bool {
		return func(k, v []byte) bool { return !live(s)(k, v) }
	}
	drop := func(kind byte, like func(*Store) func(k, v []byte) bool) func(t *testing.T, s *Store) {
		return func(t *testing.T, s *Store) {
			var l func(k, v []byte) bool
			if like != nil {
				l = like(s)
			}
			key, _ := nth(t, s, kind, 0, l)
			s.dropKey(t, key)
		}
	}
	rubbish := func(kind byte) func(t *testing.T, s *Store) {
		return func(t *testing.T, s *Store) {
			key, _ := nth(t, s, kind, 0, nil)
			s.putKey(t, key, []byte{0xff})
		}
	}
	changeOutput := func(like func(*Store) func(k, v []byte) bool, change func(o *chain.Output)) func(t *testing.T, s *Store) {
		return func(t *testing.T, s *Store) {
			key, value := nth(t, s, keyOutput, 0, like(s))
			o := chain.Output{Ref: chain.TxInFromKey(key[1:])}
			if err := decodeOutput(value, &o); err != nil {
				t.Fatal(err)
			}
			change(&o)
			s.putKey(t, key, appendOutput(nil, &o))
		}
	}
	changeHead := func(change func(h *head)) func(t *testing.T, s *Store) {
		return func(t *testing.T, s *Store) {
			h := s.head
			change(&h)
			s.putKey(t, headKey, appendHead(nil, &h))
		}
	}
	changeRecord := func(change func(r *record)) func(t *testing.T, s *Store) {
		return func(t *testing.T, s *Store) {
			var rec record
			key, value := nth(t, s, keyRecord, 0, func(_, v []byte) bool { return rec.decode(v) == nil && len(rec.txs) > 0 })
			if err := rec.decode(value); err != nil {
				t.Fatal(err)
			}
			change(&rec)
			e := &chain.Effects{Link: rec.link, Txs: rec.txs}
			for _, ref := range rec.spent {
				e.Spent = append(e.Spent, chain.Output{Ref: ref})
			}
			for _, ref := range rec.created {
				e.Created = append(e.Created, chain.Output{Ref: ref})
			}
			s.putKey(t, key, appendRecord(nil, e, rec.raw, rec.made, rec.used))
		}
	}
	aged := func(s *Store) func(k, v []byte) bool { // made by a block without a record
		return func(_, v []byte) bool {
			var o chain.Output
			return decodeOutput(v, &o) == nil && o.Height > chain.OriginHeight && o.Height < s.head.base.Height
		}
	}
	for name, c := range map[string]struct {
		kind   string
		damage func(t *testing.T, s *Store)
	}{
		"an unspent output is gone":     {"counts", drop(keyOutput, live)},
		"a spent output is gone":        {"output", drop(keyOutput, marked)},
		"an output too many":            {"counts", func(t *testing.T, s *Store) { addOutput(t, s, chain.TxIn{ID: chain.TxID{1}}, 0) }},
		"an output above the head":      {"output", func(t *testing.T, s *Store) { addOutput(t, s, chain.TxIn{ID: chain.TxID{1}}, s.head.link.Height+5) }},
		"an output that no record made": {"output", func(t *testing.T, s *Store) { addOutput(t, s, chain.TxIn{ID: chain.TxID{1}}, s.head.link.Height) }},
		"an output's lovelace":          {"counts", changeOutput(live, func(o *chain.Output) { o.Lovelace++ })},
		"an output's slot":              {"output", changeOutput(aged, func(o *chain.Output) { o.Slot++ })},
		"a spent output's lovelace":     {"record", changeOutput(marked, func(o *chain.Output) { o.Lovelace++ })},
		"an output's bytes":             {"output", changeOutput(live, func(o *chain.Output) { o.Raw = o.Raw[:3] })},
		"an output's address":           {"index", changeOutput(live, func(o *chain.Output) { o.Raw = bytes.Clone(o.Raw); o.Raw[0] += 5; o.Raw[1]++ })},
		"an output is rubbish":          {"output", rubbish(keyOutput)},
		"a mark is gone":                {"mark", drop(keyMark, nil)},
		"a mark is rubbish":             {"mark", rubbish(keyMark)},
		"a mark of another": {"mark", func(t *testing.T, s *Store) {
			key, _ := nth(t, s, keyMark, 0, nil)
			s.putKey(t, key, appendSpender(nil, Spender{Height: 3}))
		}},
		"a mark of an unspent output": {"mark", func(t *testing.T, s *Store) {
			key, _ := nth(t, s, keyOutput, 0, live(s))
			s.putKey(t, append([]byte{keyMark}, key[1:]...), appendSpender(nil, Spender{Height: 3}))
		}},
		"a mark of nothing": {"mark", func(t *testing.T, s *Store) {
			s.putKey(t, appendRefKey(nil, keyMark, chain.TxIn{ID: chain.TxID{1}}), appendSpender(nil, Spender{}))
		}},
		"a record is gone":          {"chain", func(t *testing.T, s *Store) { s.dropKey(t, appendPositionKey(nil, keyRecord, s.links[1].Position())) }},
		"a record is rubbish":       {"record", rubbish(keyRecord)},
		"a record of another block": {"chain", changeRecord(func(r *record) { r.link.Point.Hash[3]++ })},
		"a record's lovelace":       {"record", changeRecord(func(r *record) { r.made++ })},
		"a record makes one more": {"output", changeRecord(func(r *record) {
			r.created = append(r.created, chain.TxIn{ID: r.txs[len(r.txs)-1].ID, Index: 999})
			r.txs[len(r.txs)-1].Created++
		})},
		"a record above the head": {"record", func(t *testing.T, s *Store) {
			l := s.head.link
			l.Height += 3
			s.putKey(t, appendPositionKey(nil, keyRecord, l.Position()), appendRecord(nil, &chain.Effects{Link: l}, segment.Place{}, 0, 0))
		}},
		"a raw block is elsewhere":  {"raw block", changeRecord(func(r *record) { r.raw.Offset++ })},
		"a raw block is shorter":    {"raw block", changeRecord(func(r *record) { r.raw.Size-- })},
		"a raw block is in no file": {"raw block", changeRecord(func(r *record) { r.raw.File += 1000 })},
		"points are gone":           {"chain", drop(keyPoints, nil)},
		"points are rubbish":        {"points", rubbish(keyPoints)},
		"points of another chain": {"chain", func(t *testing.T, s *Store) {
			key, v := nth(t, s, keyPoints, 0, nil)
			v[len(v)-packEntry+8]++
			s.putKey(t, key, v)
		}},
		"points above the floor": {"points", func(t *testing.T, s *Store) {
			l := s.head.link
			s.putKey(t, appendPositionKey(nil, keyPoints, l.Position()), appendPackLink(appendPackHead(nil, l), l))
		}},
		"an orphan is rubbish": {"orphan", func(t *testing.T, s *Store) { s.putKey(t, appendOrphanKey(nil, chain.Hash{3}), []byte{1}) }},
		"an orphan under another key": {"orphan", func(t *testing.T, s *Store) {
			s.putKey(t, appendOrphanKey(nil, chain.Hash{3}), appendLink(nil, s.head.base))
		}},
		"an orphan that is on our chain": {"orphan", func(t *testing.T, s *Store) {
			l := s.head.link
			s.putKey(t, appendOrphanKey(nil, l.Point.Hash), appendLink(nil, l))
		}},
		"an index entry is gone":         {"index", drop(indexPayment, nil)},
		"an asset's index entry is gone": {"index", drop(indexAsset, nil)},
		"an index entry of nothing": {"index", func(t *testing.T, s *Store) {
			key, _ := nth(t, s, indexPayment, 0, nil)
			s.putKey(t, append(key[:len(key)-36], make([]byte, 36)...), nil)
		}},
		"an index entry of another":            {"index", func(t *testing.T, s *Store) { key, _ := nth(t, s, indexStake, 0, nil); key[1]++; s.putKey(t, key, nil) }},
		"a spent output in the archive is bad": {"archive", rubbish(keyGone)},
		"spent for good and not": {"archive", func(t *testing.T, s *Store) {
			k, v := nth(t, s, keyOutput, 0, live(s))
			s.putKey(t, append([]byte{keyGone}, k[1:]...), append(appendSpender(nil, Spender{Height: 1}), v...))
		}},
		"the head's outputs":         {"counts", changeHead(func(h *head) { h.utxos++ })},
		"the head's lovelace":        {"counts", changeHead(func(h *head) { h.lovelace++ })},
		"the head's marks":           {"counts", changeHead(func(h *head) { h.marks++ })},
		"the head's point":           {"chain", changeHead(func(h *head) { h.link.Point.Hash[0]++ })},
		"the head's highest":         {"head", changeHead(func(h *head) { h.highest = h.link.Height - 1 })},
		"the floor":                  {"chain", changeHead(func(h *head) { h.base.Point.Hash[0]++ })},
		"the head is rubbish":        {"head", func(t *testing.T, s *Store) { s.putKey(t, headKey, []byte{1}) }},
		"the head is gone":           {"head", func(t *testing.T, s *Store) { s.dropKey(t, headKey) }},
		"the description is gone":    {"description", func(t *testing.T, s *Store) { s.dropKey(t, metaKey) }},
		"an unknown key":             {"unknown key", func(t *testing.T, s *Store) { s.putKey(t, []byte("Zebra"), nil) }},
		"a redo log that is rubbish": {"redo log", func(t *testing.T, s *Store) { s.putKey(t, appendRedoKey(nil, 1), []byte{9}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := built
			opts.Dir = filepath.Join(t.TempDir(), "damaged")
			copyDir(t, built.Dir, opts.Dir)
			s := mustOpen(t, opts)
			c.damage(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			found := checkDir(t, opts.Dir).Findings
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Kind == c.kind }) {
				t.Errorf("want %q, found %+v", c.kind, found)
			}
			for _, f := range found {
				if f.Count < 1 || f.First == "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// addOutput writes an output that no block made.
func addOutput(t *testing.T, s *Store, ref chain.TxIn, h chain.Height) {
	t.Helper()
	o := chain.Output{Ref: ref, Height: h, Lovelace: 5, Raw: make([]byte, 12)}
	if l, ok, err := s.LinkAt(chain.Position{Height: h}); err == nil && ok {
		o.Slot = l.Point.Slot
	}
	s.putKey(t, appendRefKey(nil, keyOutput, ref), appendOutput(nil, &o))
}

// TestCheckRefuses: what Check cannot look at is an error.
func TestCheckRefuses(t *testing.T) {
	opts := filled(t)
	if _, err := Check(t.Context(), CheckOptions{Dir: t.TempDir()}); !errors.Is(err, ErrNoStore) {
		t.Errorf("an empty directory: %v", err)
	}
	s := mustOpen(t, opts)
	if _, err := Check(t.Context(), CheckOptions{Dir: opts.Dir}); !errors.Is(err, ErrHeld) {
		t.Errorf("a held directory: %v", err)
	}
	s.putKey(t, metaKey, appendMeta(nil, meta{version: formatVersion + 1}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), CheckOptions{Dir: opts.Dir}); !errors.Is(err, ErrFormat) {
		t.Errorf("a newer format: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Check(ended, CheckOptions{Dir: filled(t).Dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

// TestCheckOfDamagedFiles: files that are damaged are named, and the contents are
// not guessed at.
func TestCheckOfDamagedFiles(t *testing.T) {
	const seed = 5
	_, closed, _, _ := damageable(t, seed)
	for pattern, kind := range map[string]string{"*.sst": "table", "MANIFEST": "manifest", "KEYREGISTRY": "registry", recordFile: "own record"} {
		dir := filepath.Join(t.TempDir(), "damaged")
		copyDir(t, closed, dir)
		files, err := filepath.Glob(filepath.Join(dir, "db", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-len(b)/4] ^= 4
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		c := checkDir(t, dir)
		if c.Read || len(c.Findings) == 0 || c.Findings[0].Kind != kind || !strings.Contains(c.Findings[0].First, filepath.Base(files[0])) {
			t.Errorf("%s: %+v", pattern, c)
		}
	}
}

// TestCheckOfADatabaseJustMade: a kill came between its making and the first thing
// written to it.
func TestCheckOfADatabaseJustMade(t *testing.T) {
	opts := testOptions(t)
	dir := filepath.Join(opts.Dir, "db")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	db, err := badger.Open(badgerOptions(opts, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := Check(t.Context(), CheckOptions{Dir: opts.Dir}); !errors.Is(err, ErrNoStore) {
		t.Fatalf("%+v, %v, want %v", c, err, ErrNoStore)
	}
	s := mustOpen(t, opts)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
