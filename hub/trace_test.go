package hub

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/internal/shared"
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

// traceRun is a hub being driven by a trace.
type traceRun struct {
	*traceNames
	// thin makes the hub keep contents only as long as somebody is owed them, and
	// read them from kept.
	thin  bool
	kept  keptBlocks
	head  traceLine
	hub   *Hub
	subs  map[string]*UTxOSubscription
	watch map[string]Subscription[TxStatus]
	fresh map[string]bool // subscribed to in this call
	known map[string]string
	// submitted and onChain are the transactions submitted to this hub, and those
	// that were in a block it was given.
	submitted, onChain map[string]bool
}

// keptBlocks is a journal that forgets nothing.
type keptBlocks map[chain.Point]*chain.AppliedBlock

func (k keptBlocks) Block(at chain.At) (*chain.AppliedBlock, error) {
	if b := k[at.Point]; b != nil {
		return b, nil
	}
	return nil, errors.New("no such block")
}

func (r *traceRun) start() {
	if r.kept == nil {
		r.kept = keptBlocks{}
	}
	r.subs, r.watch, r.known = map[string]*UTxOSubscription{}, map[string]Subscription[TxStatus]{}, map[string]string{}
	r.submitted, r.onChain = map[string]bool{}, map[string]bool{}
	genesis := make([]*chain.UTxO, len(r.head.Genesis))
	for i, g := range r.head.Genesis {
		genesis[i] = r.utxo(g, chain.Origin)
	}
	cfg := Config{
		Capabilities: Capabilities{
			Kinds: allKinds(), Partial: r.head.Provider == "partial", Indexed: ^query.Kinds(0), Replay: true,
			Horizon: chain.Height(r.head.K), MaxConfirmations: chain.Height(r.head.Deepest), Idle: r.head.Idle,
		},
		FirstHeight: chain.Height(r.head.First), SeedWindow: chain.Height(r.head.Bound), Bound: Unbounded,
		Genesis: func(q query.UTxO) (rows []*chain.UTxO, err error) {
			for _, u := range genesis {
				if q.Match(u) {
					rows = append(rows, u)
				}
			}
			return rows, nil
		},
	}
	if r.thin && !cfg.Capabilities.Partial {
		cfg.Contents = r.kept
	}
	r.hub = New(cfg)
}

func (r *traceRun) options(l *traceLine) Options {
	o := Options{Confirmations: chain.Height(l.Depth), NoRollback: l.NoRollback, Idle: l.Idle}
	if len(l.Kinds) == 1 {
		o.Events = CreatedOnly
		if l.Kinds[0] == "spent" {
			o.Events = SpentOnly
		}
	}
	return o
}

func reasonOf(err error) string {
	var older *OlderError
	var gap *GapError
	switch {
	case errors.As(err, &older):
		return "older"
	case errors.As(err, &gap):
		return "gap"
	}
	for reason, e := range map[string]error{
		"dead": ErrFailed, "depth": ErrUnsupported, "reach": ErrReach, "shallow": ErrShallow, "unknown": ErrUnknownPoint,
		"height": ErrHeight, "ahead": ErrAhead, "seed unreadable": ErrSeed,
	} {
		if errors.Is(err, e) {
			return reason
		}
	}
	if errors.Is(err, ErrResync) {
		return "resync required"
	}
	return err.Error()
}

type subState struct{ await, held bool }

func (r *traceRun) states() map[string]subState {
	out := map[string]subState{}
	for name, s := range r.subs {
		out[name] = subState{s.state == await, s.state == await && s.wait.held}
	}
	return out
}

func (r *traceRun) perform(l *traceLine) outcome {
	before := r.states()
	o := outcome{Result: "ok", Events: map[string][]string{}, Died: map[string]string{}, Changed: map[string]string{}}
	refuse := func(err error) {
		if err != nil {
			o.Result, o.Reason = "refused", reasonOf(err)
			if r.hub.failed != nil && (l.Call == "apply" || l.Call == "rollback") {
				o.Result = "dead"
			}
		}
	}
	skip := ""
	r.fresh = map[string]bool{}
	switch l.Call {
	case "subscribe", "after":
		opts := r.options(l)
		if l.Call == "after" {
			opts.Start, opts.After = Resume, r.cursor(l.Cursor)
		} else {
			if l.Start == "origin" {
				opts.Start = Origin
			}
			switch l.seedMode() {
			case "now":
				opts.Seed, opts.Rows = SeedNow, r.rows(l.Rows)
			case "later":
				opts.Seed = SeedLater
			}
		}
		s, err := r.hub.SubscribeUTxO(r.query(l.Query), opts)
		refuse(err)
		if err == nil {
			r.subs[l.Sub] = s
			if s.state == await && l.seedMode() == "now" {
				o.Result = "stale"
			}
			if s.state == await && s.wait.held {
				o.Result = "held"
			}
			w := int64(s.watermark())
			o.Watermark = &w
			if s.state == dead {
				o.Result = "dead"
			}
		}
	case "seed":
		if s := r.subs[l.Sub]; s != nil {
			o.Result = s.Seed(r.at(l.At), r.rows(l.Rows)).String()
		} else {
			o.Result = "ignored"
		}
	case "seed_fail":
		o.Result = "ignored"
		if s := r.subs[l.Sub]; s != nil {
			s.SeedFailed(errors.New("disk"))
			if s.state == dead {
				o.Result = "dead"
			}
		}
	case "cancel":
		if s := r.subs[l.Sub]; s != nil {
			s.Cancel()
			delete(r.subs, l.Sub)
		}
		skip = l.Sub
	case "apply":
		for _, t := range l.Block.Txs {
			r.onChain[t.ID] = true
		}
		refuse(r.hub.ApplyBlock(r.block(l.Block)))
	case "rollback":
		refuse(r.hub.RollbackTo(r.at(l.To)))
	case "status":
		s, err := r.hub.SubscribeStatus(r.tx(l.Tx))
		if err != nil {
			o.Result, o.Reason = "refused", reasonOf(err)
			break
		}
		st, _, _ := s.Poll()
		o.Status = r.statusText(st)
		r.fresh[l.Tx] = r.watch[l.Tx] == nil
		if old := r.watch[l.Tx]; old != nil {
			defer old.Cancel()
		}
		r.watch[l.Tx], r.known[l.Tx] = s, o.Status
		for tx, s := range r.watch {
			if !contains(l.Watched, tx) {
				s.Cancel()
				delete(r.watch, tx)
			}
		}
	case "submit":
		r.fresh[l.Tx], r.submitted[l.Tx] = r.watch[l.Tx] == nil, true
		o.Status = r.statusText(r.hub.Submitted(r.tx(l.Tx)))
	default:
		panic("call " + l.Call)
	}
	for name, s := range r.subs {
		if name == skip {
			continue
		}
		for {
			e, ok, err := s.Poll()
			if err != nil {
				o.Died[name] = reasonOf(err)
				if name == l.Sub && l.Call != "cancel" {
					o.Reason = o.Died[name]
				}
				delete(r.subs, name)
			}
			if !ok {
				break
			}
			o.Events[name] = append(o.Events[name], r.eventText(&e))
		}
		freeOrder(o.Events[name])
		had := before[name]
		if s.state == live && had.await && name != l.Sub {
			o.Accepted = append(o.Accepted, name)
		}
		if s.state == await && had.held && !s.wait.held && name != l.Sub {
			o.Stale = append(o.Stale, name)
		}
	}
	for tx, s := range r.watch {
		if st, ok, _ := s.Poll(); ok {
			if text := r.statusText(st); text != r.known[tx] {
				o.Changed[tx] = text
				r.known[tx] = text
			}
		}
	}
	return o
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

func (r *traceRun) statusText(s TxStatus) string {
	if s.onChain() {
		return s.State.String() + " " + r.atText(s.At)
	}
	return s.State.String()
}

func wantStatus(s []any) string {
	if len(s) == 0 {
		return ""
	}
	text := s[0].(string)
	if len(s) > 1 {
		at := s[1].([]any)
		text += fmt.Sprintf(" %v@%v", at[0], at[1])
	}
	return text
}

// differs tells how an outcome is not what the trace wants, or "".
func (r *traceRun) differs(l *traceLine, got outcome) string {
	if l.Result != got.Result {
		return fmt.Sprintf("result %q, want %q", got.Result, l.Result)
	}
	class := func(s string) string {
		if l.Call == "after" && (s == "older" || s == "unknown" || s == "gap" || s == "resync required") {
			return "cannot go on"
		}
		return s
	}
	if class(l.Reason) != class(got.Reason) {
		return fmt.Sprintf("reason %q, want %q", got.Reason, l.Reason)
	}
	if l.Watermark != nil && l.Result != "dead" && (got.Watermark == nil || *got.Watermark != *l.Watermark) {
		return fmt.Sprintf("watermark %v, want %d", got.Watermark, *l.Watermark)
	}
	sameStatus := func(want, got string, fresh bool) bool {
		either := func(s string) bool { return s == "notfound" || s == "unknown" }
		return want == got || fresh && r.head.Provider == "complete" && either(want) && either(got)
	}
	// The traces' hub keeps the ids of submitted transactions for ever, but not
	// what became of them: of one that was confirmed and lies below the window it
	// still says pending. Ours forgets both and says that it does not know.
	settled := l.Call == "status" && r.onChain[l.Tx] && r.submitted[l.Tx] && got.Status == "unknown" && wantStatus(l.Status) == "pending"
	if want := wantStatus(l.Status); !settled && !sameStatus(want, got.Status, r.fresh[l.Tx]) {
		return fmt.Sprintf("status %q, want %q", got.Status, want)
	}
	if !reflect.DeepEqual(nonNil(l.Died), got.Died) {
		return fmt.Sprintf("died %v, want %v", got.Died, l.Died)
	}
	names := map[string]bool{}
	for n := range l.Events {
		names[n] = true
	}
	for n := range got.Events {
		names[n] = true
	}
	for n := range names {
		var want []string
		for _, e := range l.Events[n] {
			want = append(want, e.text())
		}
		freeOrder(want)
		if len(want) != len(got.Events[n]) {
			return fmt.Sprintf("%s got\n    %s\n  want\n    %s", n, strings.Join(got.Events[n], "\n    "), strings.Join(want, "\n    "))
		}
		for i := range want {
			if !sameText(want[i], got.Events[n][i]) {
				return fmt.Sprintf("%s event %d is\n    %s\n  want\n    %s", n, i, got.Events[n][i], want[i])
			}
		}
	}
	for _, x := range []struct {
		what      string
		want, got []string
	}{{"accepted", l.Accepted, got.Accepted}, {"stale", l.Stale, got.Stale}} {
		sort.Strings(x.want)
		sort.Strings(x.got)
		if strings.Join(x.want, " ") != strings.Join(x.got, " ") {
			return fmt.Sprintf("%s %v, want %v", x.what, x.got, x.want)
		}
	}
	changed := map[string]string{}
	for tx, s := range l.Changed {
		changed[tx] = wantStatus(s)
	}
	for tx := range changed {
		if !sameStatus(changed[tx], got.Changed[tx], false) {
			return fmt.Sprintf("status of %s changed to %q, want %q", tx, got.Changed[tx], changed[tx])
		}
	}
	if len(changed) != len(got.Changed) {
		return fmt.Sprintf("changed %v, want %v", got.Changed, changed)
	}
	return ""
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// replayTrace feeds a trace to hubs and reports the first differences.
func replayTrace(t *testing.T, in io.Reader, thin bool) (lines, episodes int) {
	t.Helper()
	r := &traceRun{traceNames: newTraceNames(), thin: thin}
	lost, bad := false, 0
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		lines++
		var l traceLine
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("line %d: %v", lines, err)
		}
		switch l.Call {
		case "episode":
			episodes++
			r.traceNames = newTraceNames()
			r.head, r.kept, lost = l, nil, false
			r.start()
			continue
		case "restart":
			if lost {
				continue
			}
			r.start()
			s := State{Tip: r.at(l.Tip), Highest: chain.Height(l.Highest), Floor: r.at(l.Floor)}
			for _, b := range l.Journal {
				s.Blocks = append(s.Blocks, r.block(b))
				for _, t := range b.Txs {
					r.onChain[t.ID] = true
				}
			}
			if err := r.hub.Restore(s); err != nil {
				t.Fatalf("line %d: %v", lines, err)
			}
			continue
		}
		if lost {
			continue // after a difference the rest of an episode means nothing
		}
		if why := r.differs(&l, r.perform(&l)); why != "" {
			lost = true
			if bad++; bad <= 3 {
				t.Errorf("line %d, episode %s: %s\n  %s", lines, r.head.Seed, why, clipLine(sc.Text()))
			}
		}
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	if bad > 3 {
		t.Errorf("%d episodes differ", bad)
	}
	return lines, episodes
}

func clipLine(s string) string {
	if len(s) > 1500 {
		return s[:1500] + "…"
	}
	return s
}

// replayFile replays a trace twice: on a hub that keeps whole blocks and on one
// that reads them again when it needs them.
func replayFile(t *testing.T, path string) {
	for _, thin := range []bool{false, true} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var in io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if in, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		lines, episodes := replayTrace(t, in, thin)
		if episodes == 0 {
			t.Fatal("nothing to replay")
		}
		t.Logf("%s: %d lines in %d episodes, contents kept elsewhere: %v", filepath.Base(path), lines, episodes, thin)
	}
}

func TestTraceShared(t *testing.T) {
	replayFile(t, filepath.Join(shared.Dir(t), "contract_traces.jsonl.gz"))
}

// TestTraceNamed replays the files, separated like a PATH, that OUROTAIL_TRACES
// names.
func TestTraceNamed(t *testing.T) {
	names := os.Getenv("OUROTAIL_TRACES")
	if names == "" {
		t.Skip("OUROTAIL_TRACES names no traces")
	}
	for _, path := range filepath.SplitList(names) {
		replayFile(t, path)
	}
}

// TestTraceFresh has the executable reading of the contract write new traces
// and replays them.
func TestTraceFresh(t *testing.T) {
	model := filepath.Join(shared.Dir(t), "contract_model.py")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here to write traces with")
	}
	path := filepath.Join(t.TempDir(), "fresh.jsonl")
	if out, err := exec.Command(python, model, "--dump", path, "--episodes", "60", "--from", "70000").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	replayFile(t, path)
}
