package devnode

import "github.com/ourotail/ourotail/chain"

// Behaviour is how a server misbehaves. The zero value is a good node.
type Behaviour struct {
	// MuteHandshake accepts connections and never answers a proposal.
	MuteHandshake bool
	// Versions and Magic are used in the handshake instead of the configured.
	Versions []uint16
	Magic    *uint32
	// Handshake may replace the answer to a proposal, and HandshakeSegments
	// are the sizes it is cut into.
	Handshake         func(answer []byte) []byte
	HandshakeSegments []int
	// OnReply sees every chain-sync reply before it is sent and may change it.
	// Clients call it from their own goroutines, so it must be safe for
	// concurrent use, and it must not call Stop or Disconnect, which wait for
	// those goroutines: set Reply.Close instead.
	OnReply Fault
	// OnUTxO sees, for each output that a state query asks for, what will be
	// answered, nil if it is not unspent, and returns what is answered instead.
	// The same rules hold as for OnReply.
	OnUTxO func(at chain.At, ref chain.TxIn, out []byte) []byte
	// OnSubmit sees each submitted transaction and may return the reason of a
	// rejection, as CBOR; nil leaves it to the chain. The same rules hold.
	OnSubmit func(era chain.Era, tx []byte) []byte
}

// Behave replaces the behaviour, for open connections too.
func (s *Server) Behave(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave = &b
}

func (s *Server) behaviour() *Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behave
}

// Freeze stops all writing: connections stay open and nothing more is said.
func (s *Server) Freeze() { s.gate.set(true) }

// Thaw ends a Freeze; what was held back is sent.
func (s *Server) Thaw() { s.gate.set(false) }
