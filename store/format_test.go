package store

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store/internal/segment"
)

var update = flag.Bool("update", false, "write the golden files")

// samples is one of each thing that is written, with every field set.
func samples() (out []struct{ name, kind, key, value string }) {
	hash := func(b byte) (h chain.Hash) {
		for i := range h {
			h[i] = b + byte(i)
		}
		return h
	}
	add := func(name, kind string, key, value []byte) {
		out = append(out, struct{ name, kind, key, value string }{name, kind, string(key), string(value)})
	}
	ref := chain.TxIn{ID: hash(0x10), Index: 258}
	o := &chain.Output{Ref: ref, Height: 300, Slot: 70000, TxIndex: 5, Era: chain.Babbage, Lovelace: 45_000_000_000_000_000, Raw: []byte("\xa2output")}
	genesis := &chain.Output{Ref: ref, Height: chain.OriginHeight, Era: chain.Byron, Lovelace: 1, Raw: []byte("\x82genesis")}
	by := Spender{Height: 301, TxIndex: 200, Input: 3, Tx: hash(0x20)}
	main := chain.Link{Point: chain.Point{Slot: 70000, Hash: hash(0x30)}, Parent: hash(0x31), Height: 300, Era: chain.Babbage}
	ebb := chain.Link{Point: chain.Point{Slot: 70001, Hash: hash(0x40)}, Parent: hash(0x30), Height: 300, Era: chain.Byron, Boundary: true}
	after := chain.Link{Point: chain.Point{Slot: 70001, Hash: hash(0x50)}, Parent: hash(0x40), Height: 301, Era: chain.Byron}
	e := &chain.Effects{
		Link: after, Raw: []byte("block"),
		Txs:     []chain.TxEffects{{Spent: 1}, {ID: hash(0x60), Valid: true, Spent: 1, Created: 2}, {ID: hash(0x61), Spent: 2, Created: 3}},
		Spent:   []chain.Output{{Ref: ref}, {Ref: chain.TxIn{ID: hash(0x60), Index: 1}}},
		Created: []chain.Output{{Ref: chain.TxIn{ID: hash(0x60)}}, {Ref: chain.TxIn{ID: hash(0x60), Index: 1}}, {Ref: chain.TxIn{ID: hash(0x61), Index: 300}}},
	}
	h := &head{link: after, base: ebb, swept: main.Position(), highest: 400, utxos: 1000, lovelace: 45_000_000_000_000_000, marks: 7, seeded: true, index: indexBuilding}

	add("meta", "meta", metaKey, appendMeta(nil, meta{version: formatVersion, magic: 764824073, k: 2160, archive: true, made: 1_700_000_000}))
	add("head", "head", headKey, appendHead(nil, h))
	first := emptyHead()
	add("head of an empty store", "head", headKey, appendHead(nil, &first))
	add("output", "output", appendRefKey(nil, keyOutput, ref), appendOutput(nil, o))
	add("genesis output", "output", appendRefKey(nil, keyOutput, ref), appendOutput(nil, genesis))
	add("mark", "spender", appendRefKey(nil, keyMark, ref), appendSpender(nil, by))
	add("spent output", "gone", appendRefKey(nil, keyGone, ref), appendOutput(appendSpender(nil, by), o))
	raw := segment.Of(e.Raw)
	raw.File, raw.Offset = 7, 70000
	record := appendRecord(nil, e, raw, 5, 6)
	add("record", "record", appendPositionKey(nil, keyRecord, after.Position()), record)
	pack := appendPackHead(nil, main)
	for _, l := range []chain.Link{main, ebb, after} {
		pack = appendPackLink(pack, l)
	}
	add("points", "pack", appendPositionKey(nil, keyPoints, main.Position()), pack)
	add("points from a boundary block", "pack", appendPositionKey(nil, keyPoints, ebb.Position()), appendPackLink(appendPackHead(nil, ebb), ebb))
	add("orphan", "orphan", appendOrphanKey(nil, after.Point.Hash), append(appendPlace(nil, segment.Place{Size: 3, File: 7, Offset: 70005, Sum: 9}), record...))
	part := appendRedo(nil, &op{key: []byte("key"), val: []byte("value")})
	part = appendRedo(part, &op{key: []byte("gone"), del: true})
	add("redo part", "redo", appendRedoKey(nil, 3), part)
	add("redo seal", "seal", appendRedoKey(nil, redoSeal), appendSeal(nil, 4, h))
	for _, src := range testSources(0, 1) {
		if prefix, exact := sourcePrefix(src); exact {
			add(fmt.Sprintf("index of source kind %d", src.Kind), "", ref.AppendKey(prefix), nil)
		}
	}
	for name, addr := range map[string][]byte{"byron": {0x82, 1, 2}} {
		add("index of an address: "+name, "", ref.AppendKey(appendAddressPrefix(nil, addr)), nil)
	}
	add("index of an address with 100 bytes behind it", "", ref.AppendKey(appendAddressPrefix(nil, append([]byte{0x61}, make([]byte, 128)...))), nil)
	return out
}

// TestFormat holds the bytes on disk: a change that shows here needs a new
// format version and a migration.
func TestFormat(t *testing.T) {
	var got bytes.Buffer
	for _, s := range samples() {
		fmt.Fprintf(&got, "%s\n  key   %x\n  value %x\n", s.name, s.key, s.value)
	}
	golden := filepath.Join("testdata", "format.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the format changed; run with -update if that is meant:\n%s", got.String())
	}
}

// codecs decode a value and encode what came out; nil if it does not decode.
var codecs = map[string]func(b []byte) []byte{
	"meta": func(b []byte) []byte {
		if m, err := decodeMeta(b); err == nil {
			return appendMeta(nil, m)
		}
		return nil
	},
	"head": func(b []byte) []byte {
		if h, err := decodeHead(b); err == nil {
			return appendHead(nil, &h)
		}
		return nil
	},
	"output": func(b []byte) []byte {
		var o chain.Output
		if decodeOutput(b, &o) == nil {
			return appendOutput(nil, &o)
		}
		return nil
	},
	"spender": func(b []byte) []byte {
		if m, err := decodeSpender(b); err == nil {
			return appendSpender(nil, m)
		}
		return nil
	},
	"gone": func(b []byte) []byte {
		var o chain.Output
		if m, err := decodeGone(b, &o); err == nil {
			return appendOutput(appendSpender(nil, m), &o)
		}
		return nil
	},
	"link": func(b []byte) []byte {
		if l, err := decodeLink(b); err == nil {
			return appendLink(nil, l)
		}
		return nil
	},
	"record": func(b []byte) []byte {
		var rec record
		if rec.decode(b) != nil {
			return nil
		}
		e := &chain.Effects{Link: rec.link, Txs: rec.txs}
		for _, ref := range rec.spent {
			e.Spent = append(e.Spent, chain.Output{Ref: ref})
		}
		for _, ref := range rec.created {
			e.Created = append(e.Created, chain.Output{Ref: ref})
		}
		return appendRecord(nil, e, rec.raw, rec.made, rec.used)
	},
	"orphan": func(b []byte) []byte {
		var rec record
		contents, err := decodeOrphan(b, &rec)
		if err != nil {
			return nil
		}
		r := reader{b: b}
		r.place()
		return append(appendPlace(nil, contents), r.b...)
	},
	"redo": func(b []byte) []byte {
		ops, err := decodeRedo(b, nil)
		if err != nil {
			return nil
		}
		out := []byte{}
		for i := range ops {
			out = appendRedo(out, &ops[i])
		}
		return out
	},
	"seal": func(b []byte) []byte {
		if n, h, err := decodeSeal(b); err == nil {
			return appendSeal(nil, n, &h)
		}
		return nil
	},
}

// fuzzCodec: no bytes make the decoder panic or ask for much memory, and what it
// accepts means the same after another round.
func fuzzCodec(f *testing.F, kind string) {
	for _, s := range samples() {
		if s.kind == kind {
			f.Add([]byte(s.value))
			f.Add([]byte(s.value[:len(s.value)-1]))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		once := codecs[kind](b)
		if once == nil {
			return
		}
		if twice := codecs[kind](once); !bytes.Equal(once, twice) {
			t.Fatalf("%x decodes to %x, that to %x", b, once, twice)
		}
	})
}

func FuzzMeta(f *testing.F)    { fuzzCodec(f, "meta") }
func FuzzHead(f *testing.F)    { fuzzCodec(f, "head") }
func FuzzOutput(f *testing.F)  { fuzzCodec(f, "output") }
func FuzzSpender(f *testing.F) { fuzzCodec(f, "spender") }
func FuzzGone(f *testing.F)    { fuzzCodec(f, "gone") }
func FuzzLink(f *testing.F)    { fuzzCodec(f, "link") }
func FuzzRecord(f *testing.F)  { fuzzCodec(f, "record") }
func FuzzRedo(f *testing.F)    { fuzzCodec(f, "redo") }
func FuzzSeal(f *testing.F)    { fuzzCodec(f, "seal") }

// FuzzPack: a pack that decodes can be read at every place, and gives the same
// links packed again.
func FuzzPack(f *testing.F) {
	for _, s := range samples() {
		if s.kind == "pack" {
			f.Add([]byte(s.key), []byte(s.value))
		}
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		p, err := decodePack(key, value)
		if err != nil {
			return
		}
		again := appendPackHead(nil, p.link(0))
		for i := range min(p.len(), 1000) {
			l := p.link(i)
			if l.Position() != p.position(i) || l.Point.Slot != p.slot(i) {
				t.Fatalf("link %d is %+v, position %v, slot %d", i, l, p.position(i), p.slot(i))
			}
			again = appendPackLink(again, l)
		}
		if p.len() < 1000 && !bytes.Equal(again, value) {
			t.Fatalf("%x packs to %x", value, again)
		}
	})
}

func FuzzPositionKey(f *testing.F) {
	f.Add(appendPositionKey(nil, keyRecord, chain.Position{Height: -1}))
	f.Add(appendPositionKey(nil, keyRecord, chain.Position{Height: 1 << 40, Boundary: true}))
	f.Fuzz(func(t *testing.T, key []byte) {
		p, err := positionFromKey(key)
		if err != nil {
			return
		}
		if again := appendPositionKey(nil, key[0], p); !bytes.Equal(again, key[:positionKeySize]) {
			t.Fatalf("%x is %v, that is %x", key, p, again)
		}
	})
}

func FuzzTableEnd(f *testing.F) {
	f.Add([]byte("index\x00\x00\x00\x05\x10\x01\x00\x00\x00\x02"))
	f.Add([]byte{0, 0, 0, 0})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "000001.sst")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = checkTable(path, true) // must not panic
	})
}

// TestSamplesDecode: everything written is read back as it was.
func TestSamplesDecode(t *testing.T) {
	for _, s := range samples() {
		if codec := codecs[s.kind]; codec != nil {
			if got := codec([]byte(s.value)); string(got) != s.value {
				t.Errorf("%s: %s comes back as %s", s.name, hex.EncodeToString([]byte(s.value)), hex.EncodeToString(got))
			}
		}
	}
}

// TestOrder: keys sort as positions and references compare.
func TestOrder(t *testing.T) {
	positions := []chain.Position{{Height: -1}, {Height: 0}, {Height: 0, Boundary: true}, {Height: 1}, {Height: 255}, {Height: 256, Boundary: true}, {Height: 1 << 40}}
	for i, p := range positions {
		key := appendPositionKey(nil, keyRecord, p)
		back, err := positionFromKey(key)
		if err != nil || back != p {
			t.Errorf("%v comes back as %v, %v", p, back, err)
		}
		if i > 0 && bytes.Compare(appendPositionKey(nil, keyRecord, positions[i-1]), key) >= 0 {
			t.Errorf("%v does not sort before %v", positions[i-1], p)
		}
	}
}

// TestTermsAreStable: the entries of one output are the same each time, and
// distinct outputs have distinct ones.
func TestTermsAreStable(t *testing.T) {
	s := &Store{opts: Options{Terms: testTerms}}
	h := &head{index: indexBuilt}
	entries := func(n uint32) (keys []string) {
		ops := opset{}
		o := &chain.Output{Ref: chain.TxIn{Index: n}, Raw: []byte{15, 3}}
		if err := ops.terms(s, h, o, true); err != nil {
			t.Fatal(err)
		}
		for _, op := range ops.ops {
			keys = append(keys, string(op.key))
		}
		return keys
	}
	if a, b := entries(1), entries(1); len(a) != 5 || !reflect.DeepEqual(a, b) {
		t.Errorf("%q, then %q", a, b)
	}
	if a, b := entries(1), entries(2); reflect.DeepEqual(a, b) {
		t.Errorf("both have %q", a)
	}
}
