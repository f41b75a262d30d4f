package chainsync

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

var someTx = []byte{0x84, 0xa1, 0, 0x80, 0xa0, 0xf5, 0xf6}

// mempoolOf plays a node that answers one question to a snapshot.
func mempoolOf(t *testing.T, hears string, says []byte) *Mempool {
	t.Helper()
	c := dialTest(t, func(p *peer) error {
		if err := p.hear(protoMonitor, "8101"); err != nil {
			return err
		}
		if err := p.send(protoMonitor, []byte{0x82, 2, 0x18, 99}); err != nil {
			return err
		}
		if err := p.hear(protoMonitor, hears); err != nil || says == nil {
			return err
		}
		if err := p.send(protoMonitor, says); err != nil {
			return err
		}
		return p.hold()
	})
	m, err := c.Mempool(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Slot() != 99 {
		t.Errorf("slot %d", m.Slot())
	}
	t.Cleanup(m.Release)
	return m
}

// Questions to a snapshot as they stand on the wire, and their callers.
var (
	hearsNext, hearsSizes, hearsMeasures = "8105", "8109", "810b"
	hearsHas                             = "8207" + "8206" + "5820" + strings.Repeat("ab", 32)

	asksNext = func(ctx context.Context, m *Mempool) (string, error) {
		tx, ok, err := m.Next(ctx)
		return fmt.Sprintf("%v %s %x %v", tx.Era, tx.ID.String()[:4], tx.Raw, ok), err
	}
	asksHas = func(ctx context.Context, m *Mempool) (string, error) {
		ok, err := m.Has(ctx, chain.TxID(bytes.Repeat([]byte{0xab}, 32)))
		return fmt.Sprint(ok), err
	}
	asksSizes = func(ctx context.Context, m *Mempool) (string, error) {
		s, err := m.Sizes(ctx)
		return fmt.Sprint(s), err
	}
	asksMeasures = func(ctx context.Context, m *Mempool) (string, error) {
		s, err := m.Measures(ctx)
		return fmt.Sprint(s), err
	}
)

// TestMempoolBytes: what is asked and what is read, byte by byte.
func TestMempoolBytes(t *testing.T) {
	id := blake2b.Sum256(someTx[1:4])
	wrapped := append([]byte{0x82, 6, 0x82, 6, 0xd8, 24, 0x40 + byte(len(someTx))}, someTx...)
	byron := []byte{0x82, 6, 0x82, 0, 0x82, 0, 0x82, 0x83, 0x80, 0x80, 0xa0, 0x80}
	bid := blake2b.Sum256(byron[7:11])
	for name, c := range map[string]struct {
		hears string
		ask   func(context.Context, *Mempool) (string, error)
		says  []byte
		want  string
	}{
		"a transaction":      {hearsNext, asksNext, wrapped, fmt.Sprintf("conway %x %x true", id[:2], someTx)},
		"one of byron":       {hearsNext, asksNext, byron, fmt.Sprintf("byron %x 82838080a080 true", bid[:2])},
		"no more":            {hearsNext, asksNext, []byte{0x81, 6}, "era(0) 0000  false"},
		"it is there":        {hearsHas, asksHas, []byte{0x82, 8, 0xf5}, "true"},
		"it is not":          {hearsHas, asksHas, []byte{0x82, 8, 0xf4}, "false"},
		"sizes":              {hearsSizes, asksSizes, []byte{0x82, 10, 0x83, 0x19, 1, 0, 7, 2}, "{256 7 2}"},
		"measures":           {hearsMeasures, asksMeasures, []byte{0x83, 12, 2, 0xa2, 0x61, 'b', 0x82, 1, 2, 0x61, 'a', 0x82, 0x20, 4}, "[{a -1 4} {b 1 2}]"},
		"measures, open map": {hearsMeasures, asksMeasures, []byte{0x83, 12, 2, 0xbf, 0x61, 'b', 0x82, 1, 2, 0xff}, "[{b 1 2}]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.ask(testContext(t), mempoolOf(t, c.hears, c.says))
			if err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestMempoolGoneWrong: whatever else a node says ends the connection with an
// error that says so.
func TestMempoolGoneWrong(t *testing.T) {
	for name, c := range map[string]struct {
		hears string
		ask   func(context.Context, *Mempool) (string, error)
		says  []byte
		kind  error
	}{
		"closed":                  {hearsNext, asksNext, nil, ErrDisconnected},
		"not asked for":           {hearsNext, asksNext, []byte{0x82, 8, 0xf5}, ErrMalformed},
		"two transactions":        {hearsNext, asksNext, append(append([]byte{0x83, 6}, someTx...), someTx...), ErrMalformed},
		"an era nobody knows":     {hearsNext, asksNext, append([]byte{0x82, 6, 0x82, 9, 0xd8, 24, 0x47}, someTx...), ErrMalformed},
		"no wrapper":              {hearsNext, asksNext, append([]byte{0x82, 6, 0x82, 6}, someTx...), ErrMalformed},
		"another wrapper":         {hearsNext, asksNext, append([]byte{0x82, 6, 0x82, 6, 0xd8, 25, 0x47}, someTx...), ErrMalformed},
		"no transaction in it":    {hearsNext, asksNext, []byte{0x82, 6, 0x82, 6, 0xd8, 24, 0x41, 1}, ErrMalformed},
		"a claim of three items":  {hearsNext, asksNext, []byte{0x83, 6, 1, 1}, ErrMalformed},
		"neither true nor false":  {hearsHas, asksHas, []byte{0x82, 8, 0xf6}, ErrMalformed},
		"a number for a truth":    {hearsHas, asksHas, []byte{0x82, 8, 1}, ErrMalformed},
		"two sizes":               {hearsSizes, asksSizes, []byte{0x82, 10, 0x82, 1, 2}, ErrMalformed},
		"a size of 33 bits":       {hearsSizes, asksSizes, []byte{0x82, 10, 0x83, 0x1b, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, ErrMalformed},
		"more sizes":              {hearsSizes, asksSizes, []byte{0x82, 10, 0x84, 1, 2, 3, 4}, ErrMalformed},
		"measures without a map":  {hearsMeasures, asksMeasures, []byte{0x83, 12, 1, 1}, ErrMalformed},
		"a measure of one":        {hearsMeasures, asksMeasures, []byte{0x83, 12, 1, 0xa1, 0x61, 'a', 0x81, 1}, ErrMalformed},
		"a huge measure":          {hearsMeasures, asksMeasures, []byte{0x83, 12, 1, 0xa1, 0x61, 'a', 0x82, 0x1b, 255, 0, 0, 0, 0, 0, 0, 0, 1}, ErrMalformed},
		"not CBOR":                {hearsSizes, asksSizes, []byte{0xfc}, ErrProtocol},
		"a question from a node":  {hearsSizes, asksSizes, []byte{0x81, 9}, ErrProtocol},
		"acquired in between":     {hearsSizes, asksSizes, []byte{0x82, 2, 1}, ErrProtocol},
		"a tag of sixteen bits":   {hearsSizes, asksSizes, []byte{0x82, 0x19, 1, 10, 1}, ErrProtocol},
		"an answer to submission": {hearsSizes, asksSizes, []byte{0x81, 1}, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			m := mempoolOf(t, c.hears, c.says)
			got, err := c.ask(testContext(t), m)
			var e *Error
			if !errors.Is(err, c.kind) || !errors.As(err, &e) || e.Op != "mempool" {
				t.Errorf("%s %v, want %v", got, err, c.kind)
			}
			if _, err := m.Sizes(testContext(t)); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

// TestSubmitBytes: what is sent, byte by byte, and what a node may answer.
func TestSubmitBytes(t *testing.T) {
	hears := "82008206d81847" + hex.EncodeToString(someTx)
	for name, c := range map[string]struct {
		says []byte
		kind error
		text string
	}{
		"accepted":            {[]byte{0x81, 1}, nil, ""},
		"rejected":            {[]byte{0x82, 2, 0x81, 0x82, 6, 0x81, 0x82, 7, 0x62, 'n', 'o'}, ErrRejected, "ConwayMempoolFailure: no"},
		"closed":              {nil, ErrDisconnected, ""},
		"rejected, no reason": {[]byte{0x81, 2}, ErrMalformed, "of 1 items"},
		"accepted, and more":  {[]byte{0x82, 1, 1}, ErrMalformed, "of 2 items"},
		"submitted back":      {[]byte{0x82, 0, 0}, ErrProtocol, ""},
		"not CBOR":            {[]byte{0xfc}, ErrProtocol, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialTest(t, func(p *peer) error {
				if err := p.hear(protoSubmit, hears); err != nil || c.says == nil {
					return err
				}
				if err := p.send(protoSubmit, c.says); err != nil {
					return err
				}
				return p.hold()
			})
			id, err := conn.Submit(testContext(t), chain.Conway, someTx)
			if id != blake2b.Sum256(someTx[1:4]) || !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v %v, want %v", id, err, c.kind)
			}
			if e := new(Error); err != nil && (!errors.As(err, &e) || e.Op != "submit") {
				t.Errorf("untyped: %v", err)
			}
		})
	}
}

// TestSubmitInTurn: two submissions on one connection wait for each other, and
// one that is not begun when its ctx ends leaves the connection alone.
func TestSubmitInTurn(t *testing.T) {
	go1, go2 := make(chan struct{}), make(chan struct{})
	hears := "82008206d81847" + hex.EncodeToString(someTx)
	conn := dialTest(t, func(p *peer) error {
		if err := p.hear(protoSubmit, hears); err != nil {
			return err
		}
		close(go1)
		<-go2
		if err := p.send(protoSubmit, []byte{0x81, 1}); err != nil {
			return err
		}
		if err := p.hear(protoSubmit, hears); err != nil {
			return err
		}
		if err := p.send(protoSubmit, []byte{0x81, 1}); err != nil {
			return err
		}
		return p.hold()
	})
	first := make(chan error, 1)
	go func() {
		_, err := conn.Submit(testContext(t), chain.Conway, someTx)
		first <- err
	}()
	<-go1
	ctx, cancel := context.WithTimeout(testContext(t), 10*time.Millisecond)
	defer cancel()
	if _, err := conn.Submit(ctx, chain.Conway, someTx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("behind another: %v", err)
	}
	close(go2)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := conn.Submit(testContext(t), chain.Conway, someTx); err != nil {
		t.Error(err)
	}
}

// TestFactsGoneWrong: answers about a ledger state that make no sense.
func TestFactsGoneWrong(t *testing.T) {
	height := func(ctx context.Context, s *LedgerState) error { _, err := s.Height(ctx); return err }
	calendar := func(ctx context.Context, s *LedgerState) error { _, err := s.Eras(ctx); return err }
	pparams := func(ctx context.Context, s *LedgerState) error { _, err := s.Params(ctx); return err }
	for name, c := range map[string]struct {
		hears string
		call  func(context.Context, *LedgerState) error
		says  []byte
		kind  error
	}{
		"a height of three":     {"82038102", height, []byte{0x83, 1, 1, 1}, ErrMalformed},
		"no height":             {"82038102", height, []byte{0x81, 1}, ErrMalformed},
		"a height of 64 bits":   {"82038102", height, []byte{0x82, 1, 0x1b, 255, 0, 0, 0, 0, 0, 0, 0}, ErrMalformed},
		"a start of two":        {"82038101", calendar, []byte{0x82, 1, 1}, ErrMalformed},
		"params of another era": {"820382008200" + "82068103", pparams, []byte{0x82, 0x82, 6, 0x61, 'C', 0x82, 7, 0x61, 'D'}, ErrEra},
		"params of three":       {"820382008200" + "82068103", pparams, []byte{0x83, 1, 1, 1}, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialTest(t, func(p *peer) error {
				if err := p.acquire(6); err != nil {
					return err
				}
				if err := p.ask(c.hears); err != nil {
					return err
				}
				if err := p.send(protoStateQuery, append([]byte{0x82, 4}, c.says...)); err != nil {
					return err
				}
				return p.hold()
			})
			ctx := testContext(t)
			s, err := conn.Acquire(ctx, pointAt(7))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Release()
			if err := c.call(ctx, s); !errors.Is(err, c.kind) {
				t.Errorf("%v, want %v", err, c.kind)
			}
		})
	}
}

// FuzzReadTx: whatever comes where a transaction of a mempool should is one, or
// an error.
func FuzzReadTx(f *testing.F) {
	f.Add(append([]byte{0x82, 6, 0xd8, 24, 0x47}, someTx...))
	f.Add([]byte{0x82, 0, 0x82, 0, 0x82, 0x80, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		tx := d.genTx(1 << 20)
		if err := d.end(); err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Errorf("untyped: %v", err)
			}
			return
		}
		if tx.Era < chain.Byron || tx.Era > chain.Dijkstra || len(tx.Raw) == 0 {
			t.Errorf("%+v", tx)
		}
	})
}
