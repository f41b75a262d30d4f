package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ourotail/ourotail/chain"
)

// formatVersion is written into every store. A store with another one is refused:
// 1 kept blocks in the database.
const formatVersion = 2

// meta is what a store was made for; it is written once.
type meta struct {
	version uint64
	magic   uint32
	k       chain.Height
	archive bool
	made    int64 // unix seconds
}

func appendMeta(b []byte, m meta) []byte {
	b = binary.AppendUvarint(b, m.version)
	b = binary.AppendUvarint(b, uint64(m.magic))
	b = appendHeight(b, m.k)
	b = appendBool(b, m.archive)
	return binary.AppendUvarint(b, uint64(m.made))
}

// decodeMeta refuses another version before it looks at anything behind it.
func decodeMeta(b []byte) (m meta, err error) {
	r := reader{b: b}
	m.version = r.uvarint()
	if !r.bad && m.version > 0 && m.version != formatVersion {
		return m, fmt.Errorf("%w: it has format %d, this program knows %d", ErrFormat, m.version, formatVersion)
	}
	m.magic = uint32(r.below(1 << 32))
	m.k = r.height()
	m.archive = r.bool()
	m.made = int64(r.below(1 << 62))
	if m.version == 0 {
		r.fail()
	}
	return m, r.end("the description of the store")
}

// head is the one value that every commit replaces: whatever it says, the rest
// of the database agrees with.
type head struct {
	link     chain.Link     // newest committed block; OriginHeight if none
	base     chain.Link     // newest block without a record: undo reaches down to it
	swept    chain.Position // no record at or below it is left; it may lie below base
	highest  chain.Height   // ever committed
	utxos    uint64         // live outputs
	lovelace uint64         // in them
	marks    uint64         // outputs spent but kept because the spend can be undone
	seeded   bool           // the genesis outputs are in
	index    indexState
}

type indexState uint8

const (
	indexNone indexState = iota
	indexBuilding
	indexBuilt
)

func originLink() chain.Link { return chain.Link{Height: chain.OriginHeight} }

func emptyHead() head {
	return head{
		link: originLink(), base: originLink(), swept: chain.Position{Height: chain.OriginHeight},
		highest: chain.OriginHeight,
	}
}

func appendHead(b []byte, h *head) []byte {
	b = appendLink(b, h.link)
	b = appendLink(b, h.base)
	b = appendPosition(b, h.swept)
	b = appendHeight(b, h.highest)
	b = binary.AppendUvarint(b, h.utxos)
	b = binary.AppendUvarint(b, h.lovelace)
	b = binary.AppendUvarint(b, h.marks)
	b = appendBool(b, h.seeded)
	return append(b, byte(h.index))
}

const headMax = 2*linkMax + positionSize + 4*10 + 2

func decodeHead(b []byte) (h head, err error) {
	r := reader{b: b}
	h.link = r.link()
	h.base = r.link()
	if p := r.bytes(positionSize); p != nil {
		h.swept.Height = chain.Height(binary.BigEndian.Uint64(p) ^ 1<<63)
		h.swept.Boundary = p[8] == 1
		if p[8] > 1 || h.swept.Height < chain.OriginHeight {
			r.fail()
		}
	}
	h.highest = r.height()
	h.utxos = r.uvarint()
	h.lovelace = r.uvarint()
	h.marks = r.uvarint()
	h.seeded = r.bool()
	h.index = indexState(r.byte())
	if h.index > indexBuilt {
		r.fail()
	}
	if h.index == indexBuilding && len(r.b) == refKeySize-1 {
		r.bytes(refKeySize - 1) // earlier programs noted how far they had come
	}
	return h, r.end("the head")
}

// State is what the store says about itself at one moment.
type State struct {
	Head     chain.Link   // newest committed block; the zero link with OriginHeight if there is none
	Highest  chain.Height // highest height ever committed
	Floor    chain.At     // the oldest point that Rollback accepts
	UTxOs    int64        // unspent outputs at the head
	Lovelace uint64       // in them
	Marks    int64        // outputs spent within the reach of a rollback and kept for it
	Seeded   bool         // Genesis was called
	Magic    uint32
	K        chain.Height
	Archive  bool
	Made     int64 // unix seconds of the store's first start
	Index    Index
}

// Index tells how far the indexes are.
type Index struct {
	Started bool
	Built   bool    // look-ups use them
	Done    float64 // 0 to 1, of the first pass
}

func (h *head) indexInfo() Index {
	switch h.index {
	case indexBuilding:
		return Index{Started: true}
	case indexBuilt:
		return Index{Started: true, Built: true, Done: 1}
	}
	return Index{}
}

// publish makes the head visible to State.
func (s *Store) publish() {
	old := s.state.Load()
	h := &s.head
	s.state.Store(&State{
		Head: h.link, Highest: h.highest, Floor: s.floor().At(),
		UTxOs: int64(h.utxos), Lovelace: h.lovelace, Marks: int64(h.marks), Seeded: h.seeded,
		Magic: s.opts.Magic, K: s.opts.K, Archive: s.opts.Archive, Made: old.Made,
		Index: h.indexInfo(),
	})
}

// State returns what the store held after the last commit or rollback. It never
// waits.
func (s *Store) State() State {
	st := *s.state.Load()
	if st.Index.Started && !st.Index.Built {
		st.Index.Done = s.indexDone.Load()
	}
	return st
}

// Head returns the newest committed block; the zero link with OriginHeight if
// there is none.
func (s *Store) Head() chain.Link { return s.state.Load().Head }

// Highest returns the greatest height ever committed.
func (s *Store) Highest() chain.Height { return s.state.Load().Highest }

// Floor returns the oldest point that Rollback accepts.
func (s *Store) Floor() chain.At { return s.state.Load().Floor }
