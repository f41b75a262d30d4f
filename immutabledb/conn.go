package immutabledb

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/ourotail/ourotail/chain"
)

// Conn is a folder in the place of a connection to a node: an intersection is
// found, then messages come, up to the end of the files. Intersect and Next are
// called by one goroutine at a time, Close by any.
type Conn struct {
	f       *Folder
	tip     tip
	found   bool
	started bool
	err     error // that Next ended with

	// Where reading is; touched by the reader only, once it is started.
	x      *index
	i      int        // of the next block in the chunk; before Next of the one found
	below  chain.Hash // hash of the block below it; zero at origin, and where the files begin
	file   *os.File
	origin *chain.Point // of the intersection, until it is told
	lastly int          // the last chunk when the end of the files was looked for

	out  chan result
	quit chan struct{}
	once sync.Once
	wait sync.WaitGroup
	free chan *slab
}

type result struct {
	s   *slab
	err error // behind what s holds; io.EOF at the end of the files
}

// ahead is how many slabs are read before they are asked for: with their size
// about as much as a connection to a node keeps.
const ahead = 4

// Conn begins to read. end is what End returned and node is the node's tip, if it
// could be asked for one, else chain.Origin.
func (f *Folder) Conn(end chain.Link, node chain.Tip) *Conn {
	return &Conn{f: f, tip: newTip(end, node, f.opts.K), lastly: f.last,
		out: make(chan result, ahead), quit: make(chan struct{}), free: make(chan *slab, 4*ahead)}
}

// Intersect looks for the first of the points, newest first, that is in the
// files, and tells the tip. Origin is, if the chain's first block is. Once a point
// was found, and before the first Next, it may be called again. Errors are *Error
// or the context's.
func (c *Conn) Intersect(ctx context.Context, points []chain.Point) (found chain.Point, ok bool, tip chain.Tip, err error) {
	if c.started {
		return found, false, tip, &Error{Dir: c.f.dir, Offset: -1, Kind: ErrUsage, Cause: errors.New("blocks have been asked for")}
	}
	for _, p := range points {
		if err := ctx.Err(); err != nil {
			return found, false, tip, err
		}
		if p.IsOrigin() {
			if c.f.first > 0 {
				return found, false, tip, &Error{Dir: c.f.dir, Offset: -1, Kind: ErrDamaged, File: name(c.f.first, "chunk"),
					Cause: errors.New("the files begin there, and the chain is wanted from its first block"), Hint: hintDamaged}
			}
			c.x, c.i, c.below = nil, 0, chain.Hash{}
		} else {
			x, i, ok, err := c.f.find(p)
			if err != nil {
				return found, false, tip, err
			}
			if !ok {
				continue
			}
			c.x, c.i, c.below = x, i+1, p.Hash
		}
		c.found, c.origin = true, &p
		return p, true, c.tip.now, nil
	}
	return found, false, c.tip.now, nil
}

// Next returns the next blocks, the first time behind a roll backward to the
// intersection. Its error is io.EOF at the end of the files, an *Error, or the
// context's; after the latter it may be called again.
func (c *Conn) Next(ctx context.Context) (chain.Messages, error) {
	if !c.found {
		return chain.Messages{}, &Error{Dir: c.f.dir, Offset: -1, Kind: ErrUsage, Cause: errors.New("no intersection has been found")}
	}
	if c.err != nil {
		return chain.Messages{}, c.err
	}
	if !c.started {
		c.started = true
		c.wait.Go(c.read)
	}
	select {
	case r := <-c.out:
		if r.err != nil {
			c.err = r.err
			return chain.Messages{}, r.err
		}
		return chain.Messages{List: r.s.list, Release: r.s.release}, nil
	case <-c.quit:
		c.err = &Error{Dir: c.f.dir, Offset: -1, Kind: ErrUsage, Cause: errors.New("reading was ended")}
		return chain.Messages{}, c.err
	case <-ctx.Done():
		return chain.Messages{}, ctx.Err()
	}
}

// Close ends reading. What Next returned stays valid until it is released.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.quit) })
	c.wait.Wait()
	return nil
}

// read is the reader. It ends with the files, an error, or Close.
func (c *Conn) read() {
	defer func() {
		if c.file != nil {
			_ = c.file.Close()
		}
	}()
	send := func(r result) bool {
		select {
		case c.out <- r:
			return true
		case <-c.quit:
			return false
		}
	}
	for {
		s := c.slab()
		err := c.fill(s)
		if len(s.list) > 0 && !send(result{s: s}) {
			return
		}
		if err != nil {
			send(result{err: err})
			return
		}
	}
}

// fill reads as many whole blocks as the slab has room for. Blocks may come with
// an error: they lie before it.
func (c *Conn) fill(s *slab) error {
	for c.x == nil || c.i >= c.x.n {
		if err := c.advance(); err != nil {
			return err
		}
	}
	x, first := c.x, c.i
	from, to := int64(x.entries[first].Offset), x.end(first)
	last := first + 1
	for last < x.n && x.end(last)-from <= slabSize {
		to = x.end(last)
		last++
	}
	if c.file == nil {
		file, err := os.Open(c.f.path(x.chunk, "chunk"))
		if err != nil {
			return c.f.unreadable(name(x.chunk, "chunk"), err)
		}
		c.file = file
	}
	b := s.room(int(to - from))
	n, rerr := c.file.ReadAt(b, from)
	for i := first; i < last; i++ {
		begin, end := int64(x.entries[i].Offset)-from, x.end(i)-from
		var h header
		var err error
		if end > int64(n) {
			err = c.f.short(x, from+int64(n), rerr)
		} else {
			h, err = c.f.check(x, i, b[begin:end])
		}
		if err != nil {
			if !x.sealed && i == x.n-1 && errors.Is(err, ErrDamaged) {
				return c.torn()
			}
			return err
		}
		if h.parent != c.below && (c.below != chain.Hash{}) {
			return c.f.damaged(x.chunk, "chunk", int64(x.entries[i].Offset), "block %v does not follow the one below it: its parent is %v, below lies %v", c.f.point(x, i), h.parent, c.below)
		}
		if c.origin != nil {
			s.list = append(s.list, chain.Message{Kind: chain.RollBackward, Point: *c.origin, Tip: c.tip.now})
			c.origin = nil
		}
		s.list = append(s.list, chain.Message{Kind: chain.RollForward, Raw: b[begin:end:end], Tip: c.tip.now})
		c.i, c.below = i+1, x.entries[i].Hash
	}
	return nil
}

// advance goes to the next chunk, or finds that this one has grown, or that the
// files end: io.EOF.
func (c *Conn) advance() error {
	f := c.f
	switch {
	case c.x == nil:
		return c.enter(f.first)
	case c.x.sealed:
		return c.enter(c.x.chunk + 1)
	}
	return c.again(c.x.n)
}

// torn is for a last block that is not all there: unless the node has gone on
// meanwhile, the files end before it.
func (c *Conn) torn() error { return c.again(c.i + 1) }

// again looks at the last chunk again: has it more blocks than it had?
func (c *Conn) again(had int) error {
	if err := c.f.list(); err != nil {
		return err
	}
	i := c.i
	if err := c.load(c.x.chunk); err != nil {
		return err
	}
	c.i = i
	if c.x.n < i || i > 0 && c.x.entries[i-1].Hash != c.below {
		return c.f.damaged(c.x.chunk, "secondary", -1, "blocks that were there are gone: was the folder replaced?")
	}
	if c.x.n <= had && !c.x.sealed {
		return io.EOF
	}
	return nil
}

func (c *Conn) enter(chunk int) error {
	if c.file != nil {
		if err := c.file.Close(); err != nil {
			return c.f.unreadable("", err)
		}
		c.file = nil
	}
	c.i = 0
	return c.load(chunk)
}

// load reads a chunk's indexes. From the chunk on that was the last one when the
// end of the files was looked for, blocks may lie above that end.
func (c *Conn) load(chunk int) error {
	x, err := c.f.load(chunk)
	if err != nil {
		return err
	}
	if chunk >= c.lastly {
		end, ok, err := c.f.End()
		if err != nil {
			return err
		}
		if c.lastly = c.f.last; ok {
			c.tip.grew(end)
		}
	}
	c.x = x
	return nil
}

// slab is room for blocks and their messages, used again and again.
type slab struct {
	buf     []byte
	list    []chain.Message
	release func()
}

// slabSize is how much of a chunk is read at once: enough to make the calls
// cheap, and little enough that what was just checked is still in the processor's
// cache when it is walked.
const slabSize = 256 << 10

// slab takes one that was released, or makes one.
func (c *Conn) slab() *slab {
	select {
	case s := <-c.free:
		return s
	default:
	}
	s := &slab{}
	s.release = func() {
		clear(s.list)
		s.list = s.list[:0]
		if cap(s.buf) > slabSize {
			s.buf = nil
		}
		select {
		case c.free <- s:
		default:
		}
	}
	return s
}

func (s *slab) room(n int) []byte {
	if cap(s.buf) < n {
		s.buf = make([]byte, max(n, slabSize))
	}
	s.buf = s.buf[:n]
	return s.buf
}
