package chainsync

import (
	"sync"
	"sync/atomic"
)

// slabSize is the size of an ordinary slab: a little more than a Unix socket
// buffers by default, so that one read can take all there is.
const slabSize = 256 << 10

// keepSlabs is how many free slabs are kept at the tip.
const keepSlabs = 2

// slab is a stretch of what the node sent. Messages alias it, so it is reused
// only when the reader and every batch that holds one of them let go of it.
type slab struct {
	buf  []byte
	refs atomic.Int32
	pool *slabPool
}

func (s *slab) hold() { s.refs.Add(1) }

func (s *slab) drop() {
	if s.refs.Add(-1) == 0 {
		s.pool.put(s)
	}
}

// slabPool keeps slabs of slabSize for reuse, up to a number.
type slabPool struct {
	mu   sync.Mutex
	free []*slab // guarded by mu
	max  int
}

// trim lets most of the free slabs go.
func (p *slabPool) trim() {
	p.mu.Lock()
	if n := min(len(p.free), keepSlabs); n < len(p.free) {
		clear(p.free[n:])
		p.free = p.free[:n]
	}
	p.mu.Unlock()
}

// get returns a slab of at least size bytes with one reference.
func (p *slabPool) get(size int) *slab {
	if size <= slabSize {
		p.mu.Lock()
		if n := len(p.free); n > 0 {
			s := p.free[n-1]
			p.free = p.free[:n-1]
			p.mu.Unlock()
			s.refs.Store(1)
			return s
		}
		p.mu.Unlock()
		size = slabSize
	}
	s := &slab{buf: make([]byte, size), pool: p}
	s.refs.Store(1)
	return s
}

func (p *slabPool) put(s *slab) {
	if len(s.buf) != slabSize {
		return
	}
	p.mu.Lock()
	if len(p.free) < p.max {
		p.free = append(p.free, s)
	}
	p.mu.Unlock()
}
