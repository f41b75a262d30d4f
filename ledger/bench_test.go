package ledger

import (
	"testing"

	"github.com/ourotail/ourotail/chain"
)

// split cuts chunks into their blocks.
func split(t testing.TB, chunks [][]byte) (blocks [][]byte) {
	t.Helper()
	for _, chunk := range chunks {
		for len(chunk) > 0 {
			n, err := ItemSize(chunk)
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, chunk[:n:n])
			chunk = chunk[n:]
		}
	}
	return blocks
}

// BenchmarkWalkPreview walks the real blocks of preview one after another.
func BenchmarkWalkPreview(b *testing.B) {
	blocks := split(b, chunks(b))
	var size int64
	for _, raw := range blocks {
		size += int64(len(raw))
	}
	b.SetBytes(size / int64(len(blocks)))
	b.ReportAllocs()
	var block Block
	for i := 0; b.Loop(); i++ {
		if err := block.Walk(blocks[i%len(blocks)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEffectsPreview walks and fills the effects.
func BenchmarkEffectsPreview(b *testing.B) {
	blocks := split(b, chunks(b))
	b.ReportAllocs()
	var block Block
	var effects chain.Effects
	for i := 0; b.Loop(); i++ {
		if err := block.Walk(blocks[i%len(blocks)]); err != nil {
			b.Fatal(err)
		}
		block.Effects(&effects)
	}
}

// BenchmarkWalkFat walks one block of 82 kB with 47 transactions.
func BenchmarkWalkFat(b *testing.B) {
	raw := readHex(b, sharedPath(b, "blocks", "babbage-82KB.hex"))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var block Block
	var effects chain.Effects
	for b.Loop() {
		if err := block.Walk(raw); err != nil {
			b.Fatal(err)
		}
		block.Effects(&effects)
	}
}

// BenchmarkDecodeOutput decodes the outputs of a block of 82 kB, many of them
// rich in assets.
func BenchmarkDecodeOutput(b *testing.B) {
	var block Block
	if err := block.Walk(readHex(b, sharedPath(b, "blocks", "babbage-82KB.hex"))); err != nil {
		b.Fatal(err)
	}
	var e chain.Effects
	block.Effects(&e)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := &e.Created[i%len(e.Created)]
		if _, err := DecodeOutput(o.Era, o.Raw); err != nil {
			b.Fatal(err)
		}
	}
}
