package ledger

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

func TestLabels(t *testing.T) {
	labels := obj(num(721), obj(), num(20), num(1), num(1<<64-1), str(nil), str([]byte("no number")), num(2), num(20), num(3))
	want := []uint64{20, 721, 1<<64 - 1}
	for _, test := range []struct {
		name string
		era  chain.Era
		aux  []byte
		want []uint64
	}{
		{"metadata alone", chain.Shelley, labels, want},
		{"with scripts", chain.Allegra, arr(labels, arr()), want},
		{"tagged", chain.Alonzo, tagged(tagAuxData, obj(num(1), arr(), num(0), labels)), want},
		{"tagged, indefinite", chain.Conway, tagged(tagAuxData, iobj(num(0), labels)), want},
		{"tagged, without metadata", chain.Conway, tagged(tagAuxData, obj(num(1), arr())), nil},
		{"tagged, empty", chain.Conway, tagged(tagAuxData, obj()), nil},
		{"empty array", chain.Conway, arr(), nil},
		{"a number", chain.Conway, num(1), nil},
	} {
		b := mustWalk(t, made{era: test.era, bodies: arr(body(arr(in(1, 0)), arr())), aux: obj(num(0), test.aux)}.raw())
		if diff := cmp.Diff(test.want, b.Labels(0)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	b := mustWalk(t, oneTx(chain.Conway, body(arr(), arr())))
	if got := b.Labels(0); got != nil {
		t.Errorf("without auxiliary data: %v", got)
	}
}

func TestScripts(t *testing.T) {
	native := arr(num(0), fill(28, 1))
	plutus := []byte("script")
	hash := func(language byte, script []byte) (h chain.Hash28) {
		d, err := blake2b.New(len(h), nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Write(append([]byte{language}, script...))
		d.Sum(h[:0])
		return h
	}
	holds := func(script []byte) []byte {
		return obj(num(0), enterprise(1), num(1), num(1), num(3), tagged(24, str(script)))
	}
	m := made{
		era: chain.Conway,
		bodies: arr(body(arr(in(1, 0)), arr(holds(arr(num(0), native)), holds(arr(num(9), str(plutus)))),
			num(keyCollateralReturn), holds(arr(num(4), str(plutus))))),
		sets: arr(obj(
			num(keyNativeScripts), tagged(tagSet, arr(native)),
			num(keyPlutusV1), arr(str(plutus), str(plutus)),
			num(keyPlutusV2), iarr(str(plutus)),
			num(keyPlutusV3), arr(str(plutus)),
		)),
	}
	sorted := func(h ...chain.Hash28) []chain.Hash28 {
		slices.SortFunc(h, func(x, y chain.Hash28) int { return bytes.Compare(x[:], y[:]) })
		return h
	}
	witnesses := []chain.Hash28{hash(0, native), hash(1, plutus), hash(2, plutus), hash(3, plutus)}
	b := mustWalk(t, m.raw())
	if diff := cmp.Diff(sorted(append(slices.Clone(witnesses), hash(9, plutus))...), b.Scripts(0)); diff != "" {
		t.Error(diff)
	}
	m.failed = arr(num(0)) // makes its collateral return alone
	b = mustWalk(t, m.raw())
	if diff := cmp.Diff(sorted(append(slices.Clone(witnesses), hash(4, plutus))...), b.Scripts(0)); diff != "" {
		t.Error(diff)
	}
}

// TestAuxiliaryDataOfRealBlocks: whatever the era, the auxiliary data that a
// transaction got is what its body names by hash (key 7).
func TestAuxiliaryDataOfRealBlocks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedPath(t, "blocks"), "*.hex"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, file := range files {
		b := mustWalk(t, readHex(t, file))
		if b.Era == chain.Byron {
			continue
		}
		for i := range b.Txs {
			tx := &b.Txs[i]
			var want []byte
			for k, v := range b.Pairs(tx.Body) {
				if b.Raw[k.Start] == 7 {
					want = b.Bytes(v)[2:]
				}
			}
			if (want != nil) != tx.Aux.Present() {
				t.Errorf("%s: has auxiliary data: %v; its body names some: %v", tx.ID, tx.Aux.Present(), want != nil)
			} else if got := blake2b.Sum256(b.Bytes(tx.Aux)); want != nil && !bytes.Equal(got[:], want) {
				t.Errorf("%s: auxiliary data %x, want %x", tx.ID, got, want)
			} else if want != nil {
				named++
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d transactions have auxiliary data", named)
	}
}

// TestScriptsOfRealBlocks: before reference scripts, what mints must have its
// script in the witnesses.
func TestScriptsOfRealBlocks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedPath(t, "blocks"), "*.hex"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		b := mustWalk(t, readHex(t, file))
		if b.Era >= chain.Babbage {
			continue
		}
		for i := range b.Txs {
			scripts := b.Scripts(i)
			for _, m := range b.Mint(i) {
				checked++
				if !slices.Contains(scripts, m.Policy) {
					t.Errorf("%s: policy %s is not among its scripts %v", b.Txs[i].ID, m.Policy, scripts)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("nothing minted")
	}
}

func TestAccountsAndCertificates(t *testing.T) {
	m := made{era: chain.Conway, bodies: arr(body(arr(in(1, 0)), arr(),
		num(keyWithdrawals), iobj(fill(29, 1), num(5), fill(29, 2), num(6)),
		num(keyCertificates), tagged(tagSet, arr(arr(num(1)), arr(num(2)))),
		num(keyFrom), num(10), num(keyUntil), num(20),
		num(keyVotes), obj(), num(keyProposals), arr(),
	))}
	for _, failed := range []bool{false, true} {
		if failed {
			m.failed = arr(num(0))
		}
		b := mustWalk(t, m.raw())
		var sum, accounts, certs uint64
		for account, lovelace := range b.Withdrawals(0) {
			accounts += uint64(account[0])
			sum += lovelace
		}
		for cert := range b.Certificates(0) {
			certs += uint64(cert[1])
		}
		want := [3]uint64{3, 11, 3}
		if failed {
			want = [3]uint64{}
		}
		if got := [3]uint64{accounts, sum, certs}; got != want {
			t.Errorf("failed %v: %v, want %v", failed, got, want)
		}
		tx := &b.Txs[0]
		if !tx.HasFrom || tx.From != 10 || !tx.HasUntil || tx.Until != 20 || tx.Fee != 170000 || !tx.Votes.Present() || !tx.Proposals.Present() {
			t.Errorf("%+v", tx)
		}
	}
}

// TestIterationStops: whoever breaks off an iteration is not called again.
func TestIterationStops(t *testing.T) {
	m := made{era: chain.Conway, bodies: arr(body(arr(in(1, 0)), arr(),
		num(keyWithdrawals), obj(fill(29, 1), num(5), fill(29, 2), num(6)), num(keyCertificates), arr(arr(), arr()))),
		sets: arr(obj(num(keyNativeScripts), arr(arr(), arr()), num(keyPlutusV1), arr(str(nil), str(nil)), num(keyDatums), arr(num(1), num(2)))),
		aux:  obj(num(0), obj(num(1), num(1), num(2), num(2))),
	}
	b := mustWalk(t, m.raw())
	for range b.Items(b.Txs[0].Body) {
		break
	}
	for range b.Pairs(b.Txs[0].Body) {
		break
	}
	for range b.Metadata(0) {
		break
	}
	for range b.Datums(0) {
		break
	}
	for range b.WitnessScripts(0) {
		break
	}
	for s := range b.WitnessScripts(0) {
		if s.Language == 1 {
			break
		}
	}
	for range b.Withdrawals(0) {
		break
	}
	for range b.Certificates(0) {
		break
	}
}
