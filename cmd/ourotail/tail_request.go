package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
	"github.com/ourotail/ourotail/hub"
	"github.com/ourotail/ourotail/query"
)

// tailRequest is which lines are wanted, by flags or over the control socket.
type tailRequest struct {
	queries []string
	query   query.UTxO
	from    startAt
	after   *chain.Token // go on behind it, whatever from says
	// undo is for a cursor that tail keeps itself: the reader may have had more than
	// it says, which is to be taken back first.
	undo          bool
	types         hub.Events
	confirmations chain.Height
	noRollback    bool
	idle          bool // print idle lines
	existing      bool
	exitAtTip     bool
	format        string
	color         bool
}

var typeNames = map[string]hub.Events{"both": hub.CreatedAndSpent, "created": hub.CreatedOnly, "spent": hub.SpentOnly}

// startAt is where the lines begin.
type startAt struct {
	text  string
	tip   bool
	era   chain.Era   // unless it is 0
	point chain.Point // unless tip or era
}

func parseFrom(text string) (startAt, error) {
	s := startAt{text: text}
	if text == "tip" {
		s.tip = true
		return s, nil
	}
	if era, err := chain.ParseEra(text); err == nil {
		s.era = era
		return s, nil
	}
	var err error
	if s.point, err = chain.ParsePoint(text); err != nil {
		return s, usage("--from: %w; or tip, origin, or the name of an era", err)
	}
	return s, nil
}

// check refuses what contradicts itself.
func (q *tailRequest) check() error {
	switch {
	case q.existing && !q.from.tip:
		return usage("--include-existing begins with what exists at the tip: it does not go with --from %s, from where on every output has its own line", q.from.text)
	case q.existing && q.types == hub.SpentOnly:
		return usage("--include-existing prints outputs that exist, --types spent only those that go: leave one out")
	case q.noRollback && q.confirmations > 0:
		return usage("--no-rollback waits until no fork can undo a block, which is k confirmations: leave out --confirmations")
	case q.idle && q.format == "effects":
		return usage("--idle: the canonical text has no line for blocks without effects; use --format json or pretty")
	case q.confirmations < 0:
		return usage("--confirmations %d is negative", q.confirmations)
	}
	return checkFormat(q.format, "pretty", "json", "effects")
}

// options are the subscription's, but for where it starts. Idle signals are always
// asked for: they carry the cursor of a quiet reader on.
func (q *tailRequest) options(bound int) hub.Options {
	o := hub.Options{Events: q.types, Confirmations: q.confirmations, NoRollback: q.noRollback, Idle: true, AcceptScan: true, Bound: bound}
	if q.existing {
		o.Seed = hub.SeedLater
	}
	return o
}

// asked says which lines are wanted, as far as a cursor behind one of them is no
// place among others. It has no spaces.
func (q *tailRequest) asked() string {
	queries := slices.Clone(q.queries)
	slices.Sort(queries) // any of them is enough
	h := crc32.ChecksumIEEE([]byte(strings.Join(slices.Compact(queries), "\n")))
	types := ""
	for name, t := range typeNames {
		if t == q.types {
			types = name
		}
	}
	confirmations := strconv.FormatInt(int64(q.confirmations), 10)
	if q.noRollback {
		confirmations = "k"
	}
	return fmt.Sprintf("query=%08x,types=%s,confirmations=%s", h, types, confirmations)
}

// discardAll is an undo of everything, what existed at origin included; none for a
// reader that wants no undos.
func (q *tailRequest) discardAll() (string, error) {
	if q.noRollback {
		return "", nil
	}
	p, err := newPieces(q, record.Stamp{}).of(&chain.UTxOEvent{Kind: chain.RolledBack, At: chain.At{Height: chain.OriginHeight - 1}, NoCursor: true})
	return p.Line, err
}

// values and parseTailRequest take a request over the control socket.
func (q *tailRequest) values() url.Values {
	v := url.Values{"query": q.queries, "from": {q.from.text}, "format": {q.format},
		"confirmations": {strconv.FormatInt(int64(q.confirmations), 10)}}
	for name, types := range typeNames {
		if types == q.types {
			v.Set("types", name)
		}
	}
	if q.after != nil {
		v.Set("after", q.after.String())
	}
	for name, set := range q.switches() {
		if *set {
			v.Set(name, "1")
		}
	}
	return v
}

func (q *tailRequest) switches() map[string]*bool {
	return map[string]*bool{"undo": &q.undo, "no-rollback": &q.noRollback, "idle": &q.idle, "include-existing": &q.existing,
		"exit-at-tip": &q.exitAtTip, "color": &q.color}
}

func parseTailRequest(r *http.Request) (q tailRequest, err error) {
	v := r.URL.Query()
	get := func(name, otherwise string) string {
		if text := v.Get(name); text != "" {
			return text
		}
		return otherwise
	}
	q.queries, q.format = v["query"], get("format", "json")
	for name, set := range q.switches() {
		*set = v.Get(name) != ""
	}
	var errs [4]error
	q.query, errs[0] = parseQueries(q.queries)
	q.from, errs[1] = parseFrom(get("from", "tip"))
	n, nerr := strconv.ParseInt(get("confirmations", "0"), 10, 32)
	q.confirmations, errs[2] = chain.Height(n), coded(exitBadInput, nerr)
	q.after, errs[3] = parseAfter(v.Get("after"))
	q.types, err = parseTypes(get("types", "both"))
	if err = errors.Join(append(errs[:], err)...); err != nil {
		return q, err
	}
	return q, q.check()
}

func parseTypes(text string) (hub.Events, error) {
	types, ok := typeNames[text]
	if !ok {
		return 0, usage("--types: %q is none of created, spent, both", text)
	}
	return types, nil
}

// parseAfter reads a cursor; nil for the empty text, so that
// --after "$(cat cursor)" works before there is one, and with a --cursor-file's.
func parseAfter(text string) (*chain.Token, error) {
	text, _, _ = strings.Cut(text, " ")
	if text == "" || text == begunMark {
		return nil, nil
	}
	t, err := chain.ParseToken(text)
	return &t, coded(exitBadInput, err)
}
