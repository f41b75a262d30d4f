package hub

import "github.com/ourotail/ourotail/chain"

// Watermark returns the cursor behind the newest block that the subscription was
// given, whether its reader has come so far or not. False as for Cursor.
func (s *handle[E]) Watermark() (chain.Cursor, bool) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.state != live {
		return chain.Cursor{}, false
	}
	return s.atWatermark()
}

func (s *handle[E]) atWatermark() (chain.Cursor, bool) {
	w := s.watermark()
	p, ok := s.hub.pointAt(w)
	if !ok && w >= s.hub.cfg.FirstHeight {
		return chain.Cursor{}, false
	}
	c := chain.Cursor{At: norm(chain.At{Point: p, Height: w}), Place: chain.WholeBlock}
	if s.base != nil {
		c.Base, c.HasBase = *s.base, true
	}
	return c, true
}

// Cursor returns where the reader stands: behind the last event that Next
// returned or, if it has read everything there is, behind the newest block it
// was given, so that a quiet reader's cursor does not age (contract 5.2). False
// while there is nothing to resume from: before its seed is there, inside it, and
// after the subscription has ended.
func (s *handle[E]) Cursor() (chain.Cursor, bool) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.state != live {
		return chain.Cursor{}, false
	}
	last, returned, drained := s.box.Last()
	if drained {
		if c, ok := s.atWatermark(); ok {
			return c, true
		}
	}
	if e, ok := any(&last).(interface {
		Cursor() (chain.Cursor, bool)
	}); ok && returned {
		return e.Cursor()
	}
	return chain.Cursor{}, false
}
