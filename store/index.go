package store

import (
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// The indexes are keys without values, each ending in the reference of an
// output. They are supersets: an entry says that such an output was made, the
// reader looks whether it is there and unspent.
//
//	c  payment credential, header byte, rest of the address   Shelley addresses
//	b  blake2b-256 of the address                             all others
//	s  stake credential
//	t  policy, length of the name, name
//
// One key of c answers the address and its payment credential, one of t the
// asset and its policy, as prefixes.
const (
	indexPayment = 'c'
	indexOther   = 'b'
	indexStake   = 's'
	indexAsset   = 't'
)

func isIndexKey(k []byte) bool {
	if len(k) < 1+chain.TxInSize {
		return false
	}
	switch k[0] {
	case indexPayment, indexOther, indexStake, indexAsset:
		return true
	}
	return false
}

// restMax is the longest rest of an address that is kept as it is. Addresses
// with trailing bytes, legal until Babbage, can be longer: their rest is hashed
// and the header's top bit, 0 in every address with a payment credential, set.
const restMax = 64

// appendAddressPrefix appends the prefix under which an address is indexed.
func appendAddressPrefix(b, addr []byte) []byte {
	cred, ok := address.Payment(addr)
	if !ok {
		sum := blake2b.Sum256(addr)
		return append(append(b, indexOther), sum[:]...)
	}
	b = append(append(b, indexPayment), cred.Hash[:]...)
	rest := addr[1+len(cred.Hash):] // the credential stands behind the header byte (CIP-19)
	if len(rest) > restMax {
		sum := blake2b.Sum256(rest)
		return append(append(b, addr[0]|0x80), sum[:]...)
	}
	return append(append(b, addr[0]), rest...)
}

// sourcePrefix returns the prefix under which the outputs of a source are, and
// whether nothing but a reference follows it in a key. It is empty for sources
// that no index answers.
func sourcePrefix(src chain.Source) (prefix []byte, exact bool) {
	key := []byte(src.Key)
	switch src.Kind {
	case chain.SourceAddress:
		return appendAddressPrefix(nil, key), true
	case chain.SourcePayment:
		return append([]byte{indexPayment}, key...), false
	case chain.SourceStake:
		return append([]byte{indexStake}, key...), true
	case chain.SourcePolicy:
		return append([]byte{indexAsset}, key...), false
	case chain.SourceAsset:
		if len(key) < 28 {
			return nil, false
		}
		p := append([]byte{indexAsset}, key[:28]...)
		return append(append(p, byte(len(key)-28)), key[28:]...), true
	}
	return nil, false
}

// checkTerms refuses to write where that would leave built indexes behind.
func (s *Store) checkTerms() error {
	if s.opts.Terms == nil && s.head.index != indexNone {
		return fmt.Errorf("%w: its indexes would no longer be right", ErrNoTerms)
	}
	return nil
}

// terms adds or removes the index entries of an output once the indexes are built
// or being built. Payment credentials and policies have no keys of their own.
func (o *opset) terms(s *Store, h *head, out *chain.Output, add bool) error {
	if h.index == indexNone || s.opts.Terms == nil {
		return nil
	}
	return o.entries(s, out, add)
}

func (o *opset) entries(s *Store, out *chain.Output, add bool) error {
	err := s.opts.Terms(out, func(src chain.Source) {
		if src.Kind == chain.SourcePayment || src.Kind == chain.SourcePolicy {
			return
		}
		prefix, exact := sourcePrefix(src)
		if !exact {
			return
		}
		key := append(o.arena.take(len(prefix)+chain.TxInSize), prefix...)
		key = out.Ref.AppendKey(key)
		if add {
			o.set(key, nil)
		} else {
			o.del(key)
		}
	})
	if err != nil {
		return fmt.Errorf("index terms of %s: %w", out.Ref, err)
	}
	return nil
}
