package hub

import "github.com/ourotail/ourotail/chain"

// heights counts how many subscriptions wait at each height.
type heights map[chain.Height]int

func (m heights) add(h chain.Height) { m[h]++ }

func (m heights) remove(h chain.Height) {
	if m[h]--; m[h] <= 0 {
		delete(m, h)
	}
}

// lowest returns the lowest height, or def if none is lower.
func (m heights) lowest(def chain.Height) chain.Height {
	for h := range m {
		def = min(def, h)
	}
	return def
}
