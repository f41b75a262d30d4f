package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// Shape is the kind of chain that is made.
type Shape uint8

// The shapes.
const (
	// Varied has every feature of every era, mostly in small blocks.
	Varied Shape = iota
	// MainnetLike has blocks as busy as mainnet's: about 32 kB, 19
	// transactions, 45 inputs, 52 outputs, of Conway alone.
	MainnetLike
)

// String returns the name that ParseShape reads.
func (s Shape) String() string {
	if s == MainnetLike {
		return "mainnet-like"
	}
	return "varied"
}

// ParseShape reads a shape's name.
func ParseShape(s string) (Shape, error) {
	switch strings.ToLower(s) {
	case "varied":
		return Varied, nil
	case "mainnet-like":
		return MainnetLike, nil
	}
	return 0, fmt.Errorf("no shape is called %q (want varied or mainnet-like)", s)
}

// EraSpan says for how many epochs an era lasts; the last one's number is
// ignored, it lasts for ever.
type EraSpan struct {
	Era    chain.Era
	Epochs int
}

// Options say what chain to make. The zero value is a varied chain of seed 0.
type Options struct {
	Seed  uint64
	Shape Shape
	// Magic is the network magic; 0 is DefaultMagic.
	Magic uint32
	// K is the security parameter in blocks; 0 is 432. A Byron epoch has 10k
	// slots.
	K int
	// EpochBlocks is about how many blocks an epoch has; 0 is 50, or 21,600 in
	// a mainnet-like chain.
	EpochBlocks int
	// Eras are the eras in order; nil is two epochs of Byron, one each of
	// Shelley, Allegra and Mary, two each of Alonzo and Babbage, then Conway;
	// a mainnet-like chain is Conway from the start. Dijkstra, whose format
	// may yet change, comes only if it is asked for.
	Eras []EraSpan
	// SystemStart is the time of slot 0, in whole seconds; zero is the start of
	// 2020. A slot lasts a second in every era.
	SystemStart time.Time
	// Plain leaves out what is legal but known to stop other decoders:
	// repeated keys, deep nesting, addresses with trailing bytes.
	Plain bool
	// Lean forgets contents and undo data more than K blocks below the head,
	// so that long chains can be made in little memory. The oracle then
	// answers for the last K blocks only.
	Lean bool
}

// DefaultMagic is the network magic of generated chains: no public network's.
const DefaultMagic = 42

// ErrOptions is wrapped by errors about options that make no chain.
var ErrOptions = errors.New("impossible chain")

func (o Options) withDefaults() (Options, error) {
	if o.Magic == 0 {
		o.Magic = DefaultMagic
	}
	if o.K == 0 {
		o.K = 432
	}
	if o.EpochBlocks == 0 {
		o.EpochBlocks = 50
		if o.Shape == MainnetLike {
			o.EpochBlocks = 21600
		}
	}
	if o.SystemStart.IsZero() {
		o.SystemStart = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	o.SystemStart = o.SystemStart.UTC().Truncate(time.Second)
	if o.Eras == nil {
		o.Eras = []EraSpan{{chain.Byron, 2}, {chain.Shelley, 1}, {chain.Allegra, 1}, {chain.Mary, 1},
			{chain.Alonzo, 2}, {chain.Babbage, 2}, {chain.Conway, 0}}
		if o.Shape == MainnetLike {
			o.Eras = []EraSpan{{chain.Conway, 0}}
		}
	}
	for i, e := range o.Eras {
		if i > 0 && (e.Era <= o.Eras[i-1].Era || o.Eras[i-1].Epochs < 1) {
			return o, fmt.Errorf("%w: eras must ascend and last an epoch or more", ErrOptions)
		}
		if e.Era < chain.Byron || e.Era > chain.Dijkstra {
			return o, fmt.Errorf("%w: era %v", ErrOptions, e.Era)
		}
	}
	if o.K < 1 || o.EpochBlocks < 1 || len(o.Eras) == 0 {
		return o, fmt.Errorf("%w: k, blocks of an epoch and eras must be positive", ErrOptions)
	}
	if o.Shape == MainnetLike && o.Eras[0].Era < chain.Babbage {
		return o, fmt.Errorf("%w: a mainnet-like chain begins in babbage or later", ErrOptions)
	}
	return o, nil
}

// Span is about how long a chain of n blocks lasts: so much before now is the
// SystemStart of one that has just reached the present.
func (o Options) Span(n int) (time.Duration, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	cal, slots := o.calendar(), uint64(0)
	for epoch := uint64(0); n > 0; epoch++ {
		blocks := min(n, o.EpochBlocks)
		slots += cal.slots(epoch) * uint64(blocks) / uint64(o.EpochBlocks)
		n -= blocks
	}
	return time.Duration(slots) * time.Second, nil
}

// calendar tells eras, epochs and slots apart.
type calendar struct {
	byronEpochs uint64
	byronSlots  uint64 // of an epoch
	epochSlots  uint64 // of an epoch since Shelley
	starts      []eraStart
}

type eraStart struct {
	era   chain.Era
	epoch uint64
}

func (o Options) calendar() calendar {
	c := calendar{byronSlots: 10 * uint64(o.K), epochSlots: 200 * uint64(o.K)}
	epoch := uint64(0)
	for _, e := range o.Eras {
		c.starts = append(c.starts, eraStart{e.Era, epoch})
		epoch += uint64(e.Epochs)
		if e.Era == chain.Byron {
			c.byronEpochs = uint64(e.Epochs)
			if len(o.Eras) == 1 {
				c.byronEpochs = 1 << 40
			}
		}
	}
	return c
}

func (c calendar) epoch(s chain.Slot) uint64 {
	byron := c.byronEpochs * c.byronSlots
	if uint64(s) < byron {
		return uint64(s) / c.byronSlots
	}
	return c.byronEpochs + (uint64(s)-byron)/c.epochSlots
}

func (c calendar) start(epoch uint64) chain.Slot {
	if epoch <= c.byronEpochs {
		return chain.Slot(epoch * c.byronSlots)
	}
	return chain.Slot(c.byronEpochs*c.byronSlots + (epoch-c.byronEpochs)*c.epochSlots)
}

func (c calendar) era(epoch uint64) chain.Era {
	era := c.starts[0].era
	for _, s := range c.starts {
		if epoch >= s.epoch {
			era = s.era
		}
	}
	return era
}

// slots returns the length of an epoch.
func (c calendar) slots(epoch uint64) uint64 {
	if epoch < c.byronEpochs {
		return c.byronSlots
	}
	return c.epochSlots
}

// Span is an era of a chain: where it begins and how long its epochs are.
type Span struct {
	Era        chain.Era
	Epoch      uint64
	Slot       chain.Slot
	EpochSlots uint64
}

// Spans returns the eras in order, the first from slot 0.
func (f *Forge) Spans() []Span {
	var out []Span
	for _, s := range f.cal.starts {
		out = append(out, Span{Era: s.era, Epoch: s.epoch, Slot: f.cal.start(s.epoch), EpochSlots: f.cal.slots(s.epoch)})
	}
	return out
}

// Epoch returns the epoch that a slot lies in.
func (f *Forge) Epoch(s chain.Slot) uint64 { return f.cal.epoch(s) }

// ProtocolVersion returns the first major version of an era since Shelley.
func ProtocolVersion(e chain.Era) uint64 { return protocolVersion[e] }
