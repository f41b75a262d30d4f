package query

import "github.com/ourotail/ourotail/chain"

// node is one part of a query over values T that can be looked up by keys K.
// Leaves are nodes of their own; all, some and not join them.
type node[T, K any] interface {
	match(*T) bool
	// covered tells whether a block of such a coverage answers the query.
	covered(chain.Coverage) bool
	// keys appends keys of which every match has at least one, from among those
	// that may be used. exact tells that having one is enough to match. ok is false
	// if no keys can promise that.
	keys(dst []K, may func(K) bool) (keys []K, exact, ok bool)
	appendText(dst []byte) []byte
	json() any
}

// all is an intersection; without arms it is everything.
type all[T, K any] []node[T, K]

func (a all[T, K]) match(v *T) bool {
	for _, n := range a {
		if !n.match(v) {
			return false
		}
	}
	return true
}

func (a all[T, K]) covered(c chain.Coverage) bool {
	if c.Complete {
		return true
	}
	for _, n := range a {
		if n.covered(c) {
			return true
		}
	}
	return false
}

// keys takes those of the arm with the fewest.
func (a all[T, K]) keys(dst []K, may func(K) bool) ([]K, bool, bool) {
	var best []K
	found, exact := false, false
	for _, n := range a {
		if ks, ex, ok := n.keys(nil, may); ok && (!found || len(ks) < len(best)) {
			best, exact, found = ks, ex && len(a) == 1, true
		}
	}
	return append(dst, best...), exact, found
}

// some is a union; without arms it is nothing. fast, if set, decides the arms
// that are not in rest by one lookup instead of one by one.
type some[T, K any] struct {
	arms []node[T, K]
	fast func(*T) bool
	rest []node[T, K]
}

func (s *some[T, K]) match(v *T) bool {
	arms := s.arms
	if s.fast != nil {
		if s.fast(v) {
			return true
		}
		arms = s.rest
	}
	for _, n := range arms {
		if n.match(v) {
			return true
		}
	}
	return false
}

func (s *some[T, K]) covered(c chain.Coverage) bool {
	if c.Complete {
		return true
	}
	for _, n := range s.arms {
		if !n.covered(c) {
			return false
		}
	}
	return len(s.arms) > 0
}

func (s *some[T, K]) keys(dst []K, may func(K) bool) ([]K, bool, bool) {
	exact := true
	for _, n := range s.arms {
		ks, ex, ok := n.keys(dst, may)
		if !ok {
			return nil, false, false
		}
		dst, exact = ks, exact && ex
	}
	return dst, exact, true
}

type not[T, K any] struct{ of node[T, K] }

func (n not[T, K]) match(v *T) bool                                { return !n.of.match(v) }
func (n not[T, K]) covered(c chain.Coverage) bool                  { return c.Complete }
func (n not[T, K]) keys(dst []K, _ func(K) bool) ([]K, bool, bool) { return dst, false, false }
func (n not[T, K]) appendText(dst []byte) []byte                   { return appendFactor(append(dst, "not "...), n.of) }
func (n not[T, K]) json() any                                      { return map[string]any{"not": n.of.json()} }
func (a all[T, K]) appendText(dst []byte) []byte                   { return appendArms(dst, a, " and ", "*") }
func (a all[T, K]) json() any                                      { return map[string]any{"all": armsJSON(a)} }
func (s *some[T, K]) appendText(dst []byte) []byte                 { return appendArms(dst, s.arms, " or ", "not *") }
func (s *some[T, K]) json() any                                    { return map[string]any{"any": armsJSON(s.arms)} }
func armsJSON[T, K any](arms []node[T, K]) []any {
	out := make([]any, len(arms))
	for i, n := range arms {
		out[i] = n.json()
	}
	return out
}

func appendArms[T, K any](dst []byte, arms []node[T, K], sep, empty string) []byte {
	if len(arms) == 0 {
		return append(dst, empty...)
	}
	for i, n := range arms {
		if i > 0 {
			dst = append(dst, sep...)
		}
		if len(arms) == 1 {
			dst = n.appendText(dst)
		} else {
			dst = appendFactor(dst, n)
		}
	}
	return dst
}

// appendFactor writes a node so that it can stand beside any operator.
func appendFactor[T, K any](dst []byte, n node[T, K]) []byte {
	switch n := n.(type) {
	case all[T, K]:
		if len(n) == 1 {
			return appendFactor(dst, n[0])
		}
		if len(n) == 0 {
			return n.appendText(dst)
		}
	case *some[T, K]:
		if len(n.arms) == 1 {
			return appendFactor(dst, n.arms[0])
		}
		if len(n.arms) == 0 {
			return n.appendText(dst)
		}
	default:
		return n.appendText(dst)
	}
	return append(n.appendText(append(dst, '(')), ')')
}
