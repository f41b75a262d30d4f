package forge

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ourotail/ourotail/chain"
)

// Value is neither made nor lost but by what the ledger provides for: fees,
// deposits, donations and forfeited collateral go out, withdrawals come in;
// assets come and go by minting alone.
func TestValueIsConserved(t *testing.T) {
	for _, o := range []Options{{Seed: 8, EpochBlocks: 30}, {Seed: 8, Shape: MainnetLike}} {
		f := newForge(t, o)
		n := 600
		if o.Shape == MainnetLike {
			n = 60
		}
		for range n {
			if _, err := f.Next(); err != nil {
				t.Fatal(err)
			}
			for _, tx := range f.head.Txs {
				assets := map[string]int64{}
				var in, out uint64
				for _, s := range tx.Spent {
					in += s.Lovelace
					for _, a := range s.Assets {
						assets[fmt.Sprintf("%x.%x", a.Policy, a.Name)] += int64(a.Quantity)
					}
				}
				for _, c := range tx.Created {
					out += c.Lovelace
					for _, a := range c.Assets {
						assets[fmt.Sprintf("%x.%x", a.Policy, a.Name)] -= int64(a.Quantity)
					}
				}
				for _, m := range tx.Mint {
					assets[fmt.Sprintf("%x.%x", m.Policy, m.Name)] += m.Quantity
				}
				for k, n := range assets {
					if n != 0 {
						t.Fatalf("%v: %d of %s too many go in", tx.ID, n, k)
					}
				}
				if tx.Valid && in+tx.Withdrawn != out+tx.Fee+tx.Deposited || !tx.Valid && in < out {
					t.Fatalf("%v valid %v: %d + %d in, %d + %d + %d out", tx.ID, tx.Valid, in, tx.Withdrawn, out, tx.Fee, tx.Deposited)
				}
			}
		}
	}
}

// A varied chain holds what it is for.
func TestVariedHasEverything(t *testing.T) {
	f := newForge(t, Options{Seed: 1, EpochBlocks: 100})
	seen := map[string]int{}
	big := uint64(1) << 53
	for range 2500 {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		era := b.Era.String()
		e := f.head.Effects
		see := func(what string, ok bool) {
			if ok {
				seen[what]++
			}
		}
		if b.Boundary {
			seen["boundary block"]++
			continue
		}
		see("main block in the slot of its boundary block", f.head.parent.Boundary && f.head.parent.Point.Slot == b.Point.Slot)
		see(era, true)
		see("empty "+era, len(e.Txs) == 0)
		see("burst", len(e.Txs) >= 20)
		see("vouchers removed", len(e.Removed) > 0)
		made := map[chain.TxIn]bool{}
		for _, tx := range e.Txs {
			for _, o := range tx.Spent {
				see("spend inside the block", made[o.Ref])
				see("collateral made in the block", made[o.Ref] && !tx.Valid)
				see("voucher redeemed", o.avvm)
			}
			see("failed with return "+era, !tx.Valid && len(tx.Created) == 1)
			see("failed without return "+era, !tx.Valid && len(tx.Created) == 0)
			see("failed with return at 0", !tx.Valid && len(tx.Created) == 1 && tx.Created[0].Ref.Index == 0)
			see("reference inputs", len(tx.RefIns) > 0)
			see("metadata", len(tx.Labels) > 0)
			for _, m := range tx.Mint {
				see("mint", m.Quantity > 0)
				see("burn", m.Quantity < 0)
				see("mint above 2^53", m.Quantity > int64(big))
			}
			for _, o := range tx.Created {
				made[o.Ref] = true
				see(fmt.Sprintf("address kind %x", o.Address[0]>>4), o.Address[0] != byronAddressByte)
				see("Byron address "+era, o.Address[0] == byronAddressByte)
				see("trailing bytes", o.Address[0]>>4 <= addrPointerS && o.Address[0]>>4 >= addrPointerK && len(o.Address) > 36)
				see("amount above 2^53", o.Lovelace > big)
				see("hashed datum", o.DatumKind == chain.HashedDatum)
				see("inline datum", o.DatumKind == chain.InlineDatum)
				see("deep datum", len(o.Raw) > deepDatum && bytes.Contains(o.Raw, bytes.Repeat([]byte{0x81}, deepDatum)))
				see("reference script", o.HasScript)
				see("return with assets", !tx.Valid && len(o.Assets) > 0)
				for _, a := range o.Assets {
					see("quantity above 2^53", a.Quantity > big)
					see("quantity above 2^63", a.Quantity > 1<<63)
					see("empty name", len(a.Name) == 0)
					see("name of 32 bytes", len(a.Name) == 32)
				}
				for what, on := range map[string]bool{"repeated asset": o.quirk.repeat, "repeated policy": o.quirk.repeatAll,
					"zero quantity": o.quirk.zero, "empty policy": o.quirk.emptyInner, "no assets in a map": o.quirk.emptyOuter} {
					see(what, on)
					see(what+" in conway", on && b.Era == chain.Conway)
				}
			}
		}
		raw := string(b.Raw)
		see("tag 258", b.Era == chain.Conway && strings.Contains(raw, "\x00\xd9\x01\x02"))
		see("indefinite bodies", b.Era > chain.Byron && strings.Contains(raw, "\x9f\xa4\x00"))
		see("NUL in metadata", strings.Contains(raw, "text with \x00"))
		see("no UTF-8", strings.Contains(raw, "\xff\xfe not"))
		see("repeated metadata key", strings.Contains(raw, "\xa2\x00\x07\x00"))
		see("stake address", strings.Contains(raw, "\x58\x1d\xe0") || strings.Contains(raw, "\x58\x1d\xf0"))
	}
	for _, what := range []string{"byron", "shelley", "allegra", "mary", "alonzo", "babbage", "conway",
		"boundary block", "main block in the slot of its boundary block", "empty byron", "empty conway", "burst",
		"vouchers removed", "voucher redeemed", "spend inside the block", "collateral made in the block",
		"failed with return babbage", "failed with return conway", "failed without return alonzo", "failed without return babbage",
		"failed without return conway", "reference inputs", "metadata", "mint", "burn", "mint above 2^53",
		"address kind 0", "address kind 1", "address kind 2", "address kind 3", "address kind 4", "address kind 5",
		"address kind 6", "address kind 7", "Byron address byron", "Byron address conway", "trailing bytes",
		"amount above 2^53", "hashed datum", "inline datum", "deep datum", "reference script", "return with assets",
		"quantity above 2^53", "empty name", "name of 32 bytes", "repeated asset", "repeated policy",
		"zero quantity", "empty policy", "no assets in a map", "no assets in a map in conway", "tag 258", "NUL in metadata",
		"no UTF-8", "stake address", "indefinite bodies", "repeated metadata key"} {
		if seen[what] == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
	for _, what := range []string{"repeated asset in conway", "zero quantity in conway", "empty policy in conway",
		"failed with return alonzo", "failed with return at 0"} {
		if seen[what] > 0 {
			t.Errorf("seen, and must not be: %s", what)
		}
	}
	if t.Failed() {
		t.Log(cmp.Diff(map[string]int{}, seen))
	}
}
