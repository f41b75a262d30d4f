package ledger

import (
	"testing"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/chain"
)

// byronTx is [[inputs, outputs, attributes], witnesses].
func byronTx(inputs ...[]byte) []byte {
	address := arr(tagged(24, str([]byte{0x80})), num(1))
	return arr(arr(iarr(inputs...), iarr(arr(address, num(5))), obj()), arr())
}

func byronIn(b byte, index uint64) []byte { return arr(num(0), tagged(24, str(in(b, index)))) }

// byronBlock is a main block of epoch 2, slot 3, with a proof that fits up to
// what is added to the count and to the root.
func byronBlock(txs [][]byte, count int, root byte) []byte {
	var hashes [][32]byte
	for _, tx := range txs {
		c := cursor{b: tx}
		c.array()
		s := c.item()
		hashes = append(hashes, blake2b.Sum256(append([]byte{0}, tx[s.Start:s.End]...)))
	}
	sum := naiveMerkle(hashes)
	sum[0] ^= root
	proof := arr(arr(num(uint64(len(txs)+count)), str(sum[:]), fill(32, 1)), null, fill(32, 2), fill(32, 3))
	header := arr(num(1), fill(32, 4), proof, arr(arr(num(2), num(3)), fill(64, 5), arr(num(99)), null), null)
	return Wrap(chain.Byron, false, arr(header, arr(iarr(txs...), null, arr(), arr()), arr(obj())))
}

// naiveMerkle is the definition: a tree splits at the largest power of two
// below its number of leaves.
func naiveMerkle(leaves [][32]byte) [32]byte {
	switch len(leaves) {
	case 0:
		return blake2b.Sum256(nil)
	case 1:
		return leaves[0]
	}
	split := 1
	for 2*split < len(leaves) {
		split *= 2
	}
	l, r := naiveMerkle(leaves[:split]), naiveMerkle(leaves[split:])
	return blake2b.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
}

func TestByronMain(t *testing.T) {
	for n := range 20 {
		var txs [][]byte
		for i := range n {
			txs = append(txs, byronTx(byronIn(byte(i+2), 0), byronIn(1, uint64(i)), byronIn(byte(i+2), 0)))
		}
		b := mustWalk(t, byronBlock(txs, 0, 0))
		if b.Height != 99 || b.Point.Slot != 2*21600+3 || b.Boundary || b.Era != chain.Byron || len(b.Txs) != n {
			t.Fatalf("%+v", b.Link)
		}
		for i := range b.Txs {
			spends := b.Txs[i].Spends()
			if len(spends) != 2 || spends[0] != ref(1, uint32(i)) || spends[1] != ref(byte(i+2), 0) {
				t.Errorf("spends %v", spends)
			}
		}
	}
}

func TestByronEpochSlots(t *testing.T) {
	b := Block{ByronEpochSlots: 4320}
	if err := b.Walk(byronBlock(nil, 0, 0)); err != nil || b.Point.Slot != 2*4320+3 {
		t.Errorf("slot %d, %v", b.Point.Slot, err)
	}
}

func TestByronErrors(t *testing.T) {
	good := byronTx(byronIn(1, 0))
	for _, test := range []struct {
		name string
		raw  []byte
		want error
		tx   int
	}{
		{"count", byronBlock([][]byte{good}, 1, 0), ErrCount, -1},
		{"root", byronBlock([][]byte{good}, 0, 1), ErrBodyHash, -1},
		{"root of nothing", byronBlock(nil, 0, 1), ErrBodyHash, -1},
		{"another kind of input", byronBlock([][]byte{good, byronTx(arr(num(1), tagged(24, str(in(1, 0)))))}, 0, 0), ErrUnexpected, 1},
		{"bytes after an input", byronBlock([][]byte{byronTx(arr(num(0), tagged(24, str(append(in(1, 0), 0)))))}, 0, 0), ErrUnexpected, 0},
		{"input cut short", byronBlock([][]byte{byronTx(arr(num(0), tagged(24, str(in(1, 0)[:30]))))}, 0, 0), ErrTruncated, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if e := wantError(t, test.raw, test.want); e.Tx != test.tx {
				t.Errorf("transaction %d, want %d: %v", e.Tx, test.tx, e)
			}
		})
	}
}

func TestByronBoundary(t *testing.T) {
	block := func(body []byte, proof [32]byte) []byte {
		header := arr(num(1), fill(32, 4), str(proof[:]), arr(num(3), arr(num(64798))), arr(obj()))
		return Wrap(chain.Byron, true, arr(header, body, arr(obj())))
	}
	leaders := iarr(fill(28, 1), fill(28, 2))
	b := mustWalk(t, block(leaders, blake2b.Sum256(leaders)))
	if !b.Boundary || b.Height != 64798 || b.Point.Slot != 3*21600 || len(b.Txs) != 0 {
		t.Errorf("%+v", b.Link)
	}
	var e chain.Effects
	b.Effects(&e)
	if len(e.Txs)+len(e.Spent)+len(e.Created) != 0 {
		t.Errorf("%+v", e)
	}
	wantError(t, block(leaders, blake2b.Sum256(nil)), ErrBodyHash)
}
