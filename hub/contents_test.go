package hub

import (
	"errors"
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// Contents kept elsewhere: the window keeps whole blocks only as deep as the
// deepest gate in use.
func TestContentsAreKeptOnlyAsLongAsNeeded(t *testing.T) {
	journal := map[chain.Point]*chain.AppliedBlock{}
	reads := 0
	broken := false
	f := newFx(t, func(c *Config) {
		c.Contents = contents(func(at chain.At) (*chain.AppliedBlock, error) {
			if reads++; broken || journal[at.Point] == nil {
				return nil, errModel
			}
			return journal[at.Point], nil
		})
	})
	block := func(txs ...string) {
		b := f.next(txs...)
		journal[b.At.Point] = b
		f.apply(b)
	}
	whole := func() (n int) {
		for i := range f.win.n {
			if f.win.entry(i).b != nil {
				n++
			}
		}
		return n
	}
	block("t0: > a")
	for range 9 {
		block()
	}
	if n := whole(); n != 0 {
		t.Fatalf("%d whole blocks for nobody", n)
	}
	deep := f.sub(q("a"), Options{Confirmations: 4})
	if n := whole(); n != 4 {
		t.Fatalf("%d whole blocks, want 4", n)
	}
	block("t1: t0.0 > a")
	if n := whole(); n != 4 {
		t.Fatalf("%d whole blocks after another, want 4", n)
	}
	reads = 0
	for range 4 {
		block()
	}
	f.want(deep, "spent t0.0 by t1 @10", "created t1.0 by t1 @10")
	if reads != 0 {
		t.Fatalf("%d blocks read by applying", reads)
	}
	deep.Cancel()
	block("t2: t1.0")
	if n := whole(); n != 0 {
		t.Fatalf("%d whole blocks for nobody", n)
	}
	// Corrections read what they need, before the blocks are gone.
	s := f.sub(q("a"), Options{Seed: SeedNow})
	f.want(s, "seed g.0 @origin")
	must(t, f.rollback(13))
	f.want(s, "rolledback @13", "correction t1.0 @origin")
	if reads == 0 {
		t.Fatal("nothing was read")
	}
	// What cannot be read any more ends those who need it, and nobody else.
	block("t3: t1.0")
	again, quiet := f.sub(q("a"), Options{Seed: SeedNow}), f.sub(q("a"), Options{})
	broken = true
	must(t, f.rollback(13))
	f.want(again, "end: resync")
	f.want(quiet, "rolledback @13")
	if _, err := f.SubscribeUTxO(q("a"), Options{Confirmations: 2}); !errors.Is(err, ErrReach) || !errors.Is(err, errModel) {
		t.Fatal(err)
	}
	// Status is answered from what is kept of every block.
	broken = false
	st, err := f.SubscribeStatus(f.txid("t1"))
	must(t, err)
	if v, _, _ := st.Poll(); v.State != TxConfirmed || v.At.Height != 10 {
		t.Fatalf("%+v", v)
	}
}
