package hub

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/query"
)

// Traces are JSON lines: calls on a hub, in order, with what must come of each.
// The executable reading of the contract writes them; its docstring is the
// format.

type traceAt [2]any // point's name, height

func (a traceAt) name() string         { return a[0].(string) }
func (a traceAt) height() chain.Height { return chain.Height(a[1].(float64)) }

type traceOut struct {
	Ref   string  `json:"ref"`
	Addr  string  `json:"addr"`
	Asset *string `json:"asset"`
	At    traceAt `json:"at"`
	Place uint32  `json:"place"`
}

type traceTx struct {
	ID      string     `json:"id"`
	Valid   bool       `json:"valid"`
	Spent   []traceOut `json:"spent"`
	Created []traceOut `json:"created"`
}

type traceBlock struct {
	At       traceAt         `json:"at"`
	Coverage json.RawMessage `json:"coverage"`
	Txs      []traceTx       `json:"txs"`
}

type traceEvent struct {
	Kind    string  `json:"kind"`
	Ref     string  `json:"ref"`
	Addr    string  `json:"addr"`
	Asset   *string `json:"asset"`
	Tx      string  `json:"tx"`
	At      traceAt `json:"at"`
	To      traceAt `json:"to"`
	Because string  `json:"because"`
	Cursor  string  `json:"cursor"`
}

type traceLine struct {
	Call string `json:"call"`
	// episode
	Seed     json.RawMessage `json:"seed"` // also of subscribe
	K        int64           `json:"k"`
	Deepest  int64           `json:"deepest"`
	Provider string          `json:"provider"`
	First    int64           `json:"first"`
	Idle     bool            `json:"idle"` // also of subscribe and after
	Bound    int64           `json:"bound"`
	Genesis  []traceOut      `json:"genesis"`
	// subscribe, after, seed
	Sub        string          `json:"sub"`
	Query      json.RawMessage `json:"query"`
	Kinds      []string        `json:"kinds"`
	Depth      int64           `json:"depth"`
	NoRollback bool            `json:"no_rollback"`
	Start      string          `json:"start"`
	Rows       []traceOut      `json:"rows"`
	Cursor     string          `json:"cursor"`
	At         traceAt         `json:"at"`
	// apply, rollback, status, submit, restart
	Block   traceBlock   `json:"block"`
	To      traceAt      `json:"to"`
	Tx      string       `json:"tx"`
	Watched []string     `json:"watched"`
	Tip     traceAt      `json:"tip"`
	Highest int64        `json:"highest"`
	Floor   traceAt      `json:"floor"`
	Journal []traceBlock `json:"journal"`
	// outcome
	Result    string                  `json:"result"`
	Reason    string                  `json:"reason"`
	Watermark *int64                  `json:"watermark"`
	Status    []any                   `json:"status"`
	Events    map[string][]traceEvent `json:"events"`
	Died      map[string]string       `json:"died"`
	Accepted  []string                `json:"accepted"`
	Stale     []string                `json:"stale"`
	Changed   map[string][]any        `json:"changed"`
}

func (l *traceLine) seedMode() string { return strings.Trim(string(l.Seed), `"`) }

// outcome is what came of a call, in the words of the trace.
type outcome struct {
	Result, Reason string
	Watermark      *int64
	Status         string
	Events         map[string][]string
	Died           map[string]string
	Accepted       []string
	Stale          []string
	Changed        map[string]string
}

// traceNames turns the names of a trace into what the hub takes, and back.
type traceNames struct {
	points map[chain.Point]string
	txs    map[chain.TxID]string
	assets map[chain.Hash28]string
}

func newTraceNames() *traceNames {
	return &traceNames{map[chain.Point]string{}, map[chain.TxID]string{{}: "zero"}, map[chain.Hash28]string{}}
}

func (n *traceNames) at(a traceAt) chain.At { return n.named(a.name(), a.height()) }

func (n *traceNames) named(name string, height chain.Height) chain.At {
	switch name {
	case "origin":
		return chain.Origin
	case "?":
		return chain.At{Height: height}
	}
	p := chain.Point{Slot: chain.Slot(20 * (height + 1)), Hash: sha256.Sum256([]byte("point " + name))}
	n.points[p] = name
	return chain.At{Point: p, Height: height}
}

func (n *traceNames) tx(name string) (id chain.TxID) {
	if name == "zero" {
		return chain.TxID{}
	}
	id = sha256.Sum256([]byte("tx " + name))
	n.txs[id] = name
	return id
}

func (n *traceNames) ref(s string) chain.TxIn {
	i := strings.LastIndexByte(s, '#')
	ix, _ := strconv.Atoi(s[i+1:])
	return chain.TxIn{ID: n.tx(s[:i]), Index: uint32(ix)}
}

func (n *traceNames) policy(asset string) (p chain.Hash28) {
	h := sha256.Sum256([]byte("asset " + asset))
	copy(p[:], h[:])
	n.assets[p] = asset
	return p
}

func (n *traceNames) utxo(o traceOut, at chain.At) *chain.UTxO {
	u := &chain.UTxO{Ref: n.ref(o.Ref), At: at, Out: chain.TxOut{Address: []byte(o.Addr), Lovelace: 1}}
	if o.Asset != nil {
		u.Out.Assets = []chain.Asset{{Policy: n.policy(*o.Asset), Quantity: 1}}
	}
	return u
}

func (n *traceNames) rows(rows []traceOut) []*chain.UTxO {
	out := make([]*chain.UTxO, len(rows))
	for i, r := range rows {
		out[i] = n.utxo(r, n.at(r.At))
	}
	return out
}

func (n *traceNames) query(raw json.RawMessage) query.UTxO {
	var q []json.RawMessage
	var kind, name string
	if json.Unmarshal(raw, &q) != nil || json.Unmarshal(q[0], &kind) != nil {
		panic("query " + string(raw))
	}
	if kind == "addr" || kind == "asset" {
		_ = json.Unmarshal(q[1], &name)
		if kind == "addr" {
			return query.Address([]byte(name))
		}
		return query.Asset(n.policy(name), nil)
	}
	var arms []json.RawMessage
	_ = json.Unmarshal(q[1], &arms)
	var qs []query.UTxO
	for _, a := range arms {
		qs = append(qs, n.query(a))
	}
	if kind == "union" {
		return query.AnyOf(qs...)
	}
	return query.AllOf(qs...)
}

func (n *traceNames) block(b traceBlock) *chain.AppliedBlock {
	at := n.at(b.At)
	out := &chain.AppliedBlock{At: at, Coverage: chain.Complete}
	if string(b.Coverage) != `"complete"` {
		out.Coverage = chain.Coverage{Sources: map[chain.Source]struct{}{}}
		var leaves []json.RawMessage
		_ = json.Unmarshal(b.Coverage, &leaves)
		for _, l := range leaves {
			keys, _ := n.query(l).Keys()
			out.Coverage.Sources[keys[0]] = struct{}{}
		}
	}
	for i, t := range b.Txs {
		a := chain.AppliedTx{ID: n.tx(t.ID), Index: i, Valid: t.Valid}
		for _, o := range t.Spent {
			a.Spent = append(a.Spent, chain.Effect{UTxO: n.utxo(o, n.at(o.At)), Place: o.Place})
		}
		for _, o := range t.Created {
			a.Created = append(a.Created, chain.Effect{UTxO: n.utxo(o, at), Place: o.Place})
		}
		out.Txs = append(out.Txs, a)
	}
	return out
}

func (r *traceRun) block(b traceBlock) *chain.AppliedBlock {
	out := r.traceNames.block(b)
	r.kept[out.At.Point] = out
	return out
}

// cursor reads AT[+PLACE][ base AT].
func (n *traceNames) cursor(s string) chain.Cursor {
	at := func(s string) chain.At {
		i := strings.LastIndexByte(s, '@')
		h, _ := strconv.Atoi(s[i+1:])
		return n.named(s[:i], chain.Height(h))
	}
	c := chain.Cursor{Place: chain.WholeBlock}
	s, base, ok := strings.Cut(s, " base ")
	if ok {
		c.Base, c.HasBase = at(base), true
	}
	s, place, ok := strings.Cut(s, "+")
	if ok {
		p, _ := strconv.Atoi(place)
		c.Place = int64(p)
	}
	c.At = at(s)
	return c
}

func (n *traceNames) pointName(a chain.At) string {
	if a.IsOrigin() {
		if a.Height < 0 {
			return "origin"
		}
		return "?"
	}
	return n.points[a.Point]
}

func (n *traceNames) atText(a chain.At) string {
	return fmt.Sprintf("%s@%d", n.pointName(a), a.Height)
}

func (n *traceNames) cursorText(c chain.Cursor) string {
	s := n.atText(c.At)
	if c.Place >= 0 {
		s += fmt.Sprintf("+%d", c.Place)
	}
	if c.HasBase {
		s += " base " + n.atText(c.Base)
	}
	return s
}

func (n *traceNames) eventText(e *chain.UTxOEvent) string {
	t := traceEvent{Kind: e.Kind.String()}
	at := traceAt{n.pointName(e.At), float64(e.At.Height)}
	switch e.Kind {
	case chain.RolledBack:
		t.To = at
	case chain.Idle:
		t.At = at
	default:
		t.At, t.Addr = at, string(e.UTxO.Out.Address)
		t.Ref = fmt.Sprintf("%s#%d", n.txs[e.UTxO.Ref.ID], e.UTxO.Ref.Index)
		if len(e.UTxO.Out.Assets) > 0 {
			name := n.assets[e.UTxO.Out.Assets[0].Policy]
			t.Asset = &name
		}
		switch e.Because {
		case chain.Seed:
			t.Because = "seed"
		case chain.Correction:
			t.Because = "correction"
		default:
			t.Tx = n.txs[e.Tx]
		}
	}
	if c, ok := e.Cursor(); ok {
		t.Cursor = n.cursorText(c)
	}
	return t.text()
}

// text is an event in a form that compares; the cursor stands last.
func (t traceEvent) text() string {
	asset := "-"
	if t.Asset != nil {
		asset = *t.Asset
	}
	at := func(a traceAt) string {
		if a[0] == nil {
			return "-"
		}
		return fmt.Sprintf("%s@%v", a[0], a[1])
	}
	return fmt.Sprintf("%s %s %s %s tx=%s at=%s to=%s %s|%s", t.Kind, t.Ref, t.Addr, asset, t.Tx, at(t.At), at(t.To), t.Because, t.Cursor)
}

// freeOrder sorts runs of seed events and of corrections: within one, order is
// free, and the last has the cursor whichever it is.
func freeOrder(events []string) {
	class := func(s string) string {
		head, _, _ := strings.Cut(s, "|")
		for _, c := range []string{" seed", " correction"} {
			if strings.HasSuffix(head, c) {
				return c
			}
		}
		return ""
	}
	for i := 0; i < len(events); {
		j := i + 1
		if c := class(events[i]); c != "" {
			for j < len(events) && class(events[j]) == c {
				j++
			}
			heads, cursors := make([]string, j-i), make([]string, j-i)
			for k := i; k < j; k++ {
				heads[k-i], cursors[k-i], _ = strings.Cut(events[k], "|")
			}
			sort.Strings(heads)
			for k := i; k < j; k++ {
				events[k] = heads[k-i] + "|" + cursors[k-i]
			}
		}
		i = j
	}
}

// sameText compares; a point that the trace cannot name stands for any of that
// height.
func sameText(want, got string) bool {
	if want == got {
		return true
	}
	w, g := strings.Fields(want), strings.Fields(got)
	if !strings.Contains(want, "?@") || len(w) != len(g) {
		return false
	}
	for i := range w {
		j := strings.Index(w[i], "?@")
		if w[i] == g[i] {
			continue
		}
		k := strings.LastIndexByte(g[i], '@')
		if j < 0 || k < 0 || w[i][j+1:] != g[i][k:] {
			return false
		}
	}
	return true
}
