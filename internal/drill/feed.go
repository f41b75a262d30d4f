package drill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
)

// event is what the drill remembers of a line that the consumer was given.
type event struct {
	undo     bool
	seed     bool
	spent    bool // else created
	invalid  bool // by a transaction whose scripts failed
	slot     int64
	point    string
	id       string
	ref      string
	tx       string
	address  string
	lovelace int64
	cursor   string
	at       chain.Point // of its block
	last     bool        // nothing more came of the block
	end      int64       // of the line, in bytes from the first given
}

// noSlot is the slot of origin: below every block's.
const noSlot = -1

// feed passes lines on to the consumer, block by block, and knows what it has
// been given. A block that a process began and did not end is not given.
type feed struct {
	to io.Writer

	mu      sync.Mutex
	at      chain.Point // of the last block given whole, or undone to
	begun   bool
	cursor  string // behind it
	events  []event
	writing bool // waiting for the consumer to read
	changed chan struct{}
	undos   int
}

func newFeed(to io.Writer) *feed { return &feed{to: to, changed: make(chan struct{})} }

// rewind forgets what was given behind the line that had a cursor, all of it if the
// cursor is empty; false if no line had it. What is given from here on goes to another
// process. It returns how many bytes are left of what was given.
func (f *feed) rewind(cursor string, to io.Writer) (left int64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.events)
	for n > 0 && f.events[n-1].cursor != cursor {
		n--
	}
	if n == 0 && cursor != "" {
		return 0, false
	}
	// The block of the line may not have been given whole: at is where nobody is, unless
	// it was.
	f.to, f.cursor, f.begun = to, cursor, false
	if cursor == "" {
		n = 0
	}
	if n > 0 {
		left = f.events[n-1].end
		if last := f.events[n-1]; last.last {
			f.at, f.begun = last.at, true
		}
	}
	f.events = f.events[:n:n]
	return left, true
}

// behind returns the cursor behind the last block given.
func (f *feed) behind() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor
}

// position returns the last block given, and a channel that is closed when there
// is another.
func (f *feed) position() (at chain.Point, begun bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.begun, f.changed
}

// stuck tells whether the consumer is not reading.
func (f *feed) stuck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writing
}

// given returns what the consumer was given so far.
func (f *feed) given() []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[:len(f.events):len(f.events)]
}

// end is how many bytes were given.
func (f *feed) end() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.events); n > 0 {
		return f.events[n-1].end
	}
	return 0
}

// errConsumer is wrapped when the consumer does not take its input.
var errConsumer = errors.New("the consumer stopped reading before its input ended")

// pass passes the lines of one process on, until they end.
func (f *feed) pass(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<16)
	var held []byte // lines of a block that has not ended
	var block []event
	end := f.end()
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line that a kill cut off is no line
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading ourotail's lines: %w", err)
		}
		ev, point, idle, last, err := parseLine(line)
		if err != nil {
			return fmt.Errorf("ourotail wrote %q: %w", bytes.TrimSpace(line), err)
		}
		if !idle {
			held = append(held, line...)
			end += int64(len(line))
			ev.at, ev.last, ev.end = point, last, end
			block = append(block, ev)
		}
		if !last {
			continue
		}
		if len(held) > 0 {
			f.mu.Lock()
			f.writing = true
			f.mu.Unlock()
			_, err = f.to.Write(held)
			f.mu.Lock()
			f.writing = false
			f.mu.Unlock()
			if err != nil {
				return fmt.Errorf("%w: %w", errConsumer, err)
			}
		}
		f.mu.Lock()
		f.events = append(f.events, block...)
		f.at, f.begun, f.cursor = point, true, ev.cursor
		if ev.undo {
			f.undos++
		}
		close(f.changed)
		f.changed = make(chan struct{})
		f.mu.Unlock()
		held, block = held[:0], block[:0]
	}
}

// parseLine reads a line; last tells that the block is whole with it.
func parseLine(line []byte) (ev event, at chain.Point, idle, last bool, err error) {
	var env record.Envelope
	if err := json.Unmarshal(line, &env); err != nil {
		return ev, at, false, false, err
	}
	ev.slot, ev.point, ev.cursor = noSlot, "origin", env.Cursor
	if p := env.Point; p != nil && env.Event != "seed" {
		at.Slot = chain.Slot(p.Slot)
		if at.Hash, err = chain.ParseHash(p.Hash); err != nil {
			return ev, at, false, false, err
		}
		ev.slot, ev.point = int64(p.Slot), at.String()
	}
	switch env.Event {
	case "idle":
		return ev, at, true, true, nil
	case "undo":
		ev.undo = true
		return ev, at, false, true, nil
	}
	r := env.Record
	if r == nil {
		return ev, at, false, false, errors.New("no record")
	}
	ev.seed = env.Event == "seed"
	ev.spent, ev.invalid, ev.id, ev.tx = r.Kind == "spent", !r.TxValid, r.ID, r.Tx
	ev.ref = r.Output.TransactionID + "#" + strconv.FormatUint(uint64(r.Output.OutputIndex), 10)
	ev.address = r.Output.Address
	ev.lovelace, err = strconv.ParseInt(r.Output.Value.Coins, 10, 64)
	return ev, at, false, r.LastOfBlock || ev.seed && env.Cursor != "", err
}
