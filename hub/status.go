package hub

import "github.com/ourotail/ourotail/chain"

func (h *Hub) statusApplied(*chain.AppliedBlock) {}
func (h *Hub) statusRolledBack(chain.At)         {}
