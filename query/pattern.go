package query

import (
	"errors"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

// ParseUTxO reads an output query: Kupo's patterns and a few filters, joined by
// and, or, not and parentheses. The patterns:
//
//   - everything
//     */*                   Shelley addresses
//     ADDRESS               bech32, base58 or hexadecimal; a stake address means its credential
//     CRED/* */CRED CRED/CRED  payment and stake credential; bech32, key or hash as hexadecimal
//     POLICY.* POLICY.NAME  an asset's policy, or policy and name; hexadecimal
//     *@TXID INDEX@TXID     outputs of a transaction, or one of them; TXID#INDEX as well
//     datum datum:HASH      with a datum, or with this one
//     lovelace>=N           with at least so much
//
// Errors are of type *SyntaxError.
func ParseUTxO(text string) (UTxO, error) {
	p := parser[chain.UTxO, chain.Source]{text: text, leaf: utxoLeaf, some: func(arms []utxoNode) utxoNode {
		s := &some[chain.UTxO, chain.Source]{arms: arms}
		speedUp(s)
		return s
	}}
	n, err := p.parse()
	if err != nil {
		return UTxO{}, err
	}
	if a, ok := n.(all[chain.UTxO, chain.Source]); ok && len(a) == 0 {
		n = nil
	}
	return UTxO{n}, nil
}

type utxoParser = parser[chain.UTxO, chain.Source]

func utxoLeaf(p *utxoParser, t token) (utxoNode, error) {
	q, err := utxoPattern(p, t)
	return q.node(), err
}

func utxoPattern(p *utxoParser, t token) (UTxO, error) {
	s := t.text
	switch {
	case s == "*":
		return Everything(), nil
	case s == "*/*":
		return Shelley(), nil
	case t.is("datum"):
		return HasDatum(), nil
	case t.begins("datum:"):
		h, err := chain.ParseHash(s[len("datum:"):])
		if err != nil {
			return UTxO{}, p.fail(t.from(len("datum:")), err, "%v", err)
		}
		return DatumHash(h), nil
	case t.begins("lovelace"):
		return lovelacePattern(p, t)
	case t.begins("address:"):
		b, err := address.Parse(s[len("address:"):])
		if err != nil && s != "address:" {
			return UTxO{}, p.fail(t.from(len("address:")), err, "%v", err)
		}
		return Address(b), nil
	case strings.HasPrefix(s, "{"):
		return UTxO{}, p.fail(t, nil, "a metadata label tells transactions apart, not outputs: ask for transactions")
	case strings.ContainsRune(s, '/'):
		return credentialPattern(p, t)
	case strings.ContainsAny(s, "@#"):
		return refPattern(p, t)
	case strings.ContainsRune(s, '.'):
		policy, name, any, err := parseAsset(p.fail, t)
		if err != nil {
			return UTxO{}, err
		}
		if any {
			return Policy(policy), nil
		}
		return Asset(policy, name), nil
	}
	b, err := address.Parse(s)
	if err != nil {
		return UTxO{}, p.fail(t, err, "no pattern looks like this: %v", err)
	}
	switch address.KindOf(b) {
	case address.Unknown:
		return UTxO{}, p.fail(t, nil, "no address: %d bytes of no known kind (a credential is written CRED/* or */CRED, a policy POLICY.*, a transaction *@TXID, such bytes as an address address:HEX)", len(b))
	case address.Reward:
		c, _ := address.Stake(b)
		return Stake(c.Hash), nil
	}
	return Address(b), nil
}

// from returns the rest of the token from its i-th byte on.
func (t token) from(i int) token { return token{text: t.text[i:], start: t.start + i, end: t.end} }

// begins tells whether the token begins with a word of ASCII letters, in any
// case.
func (t token) begins(word string) bool {
	return len(t.text) >= len(word) && strings.EqualFold(t.text[:len(word)], word)
}

// upTo returns the token's first i bytes.
func (t token) upTo(i int) token { return token{text: t.text[:i], start: t.start, end: t.start + i} }

// lovelacePattern reads lovelace>=N; white space may stand around the sign.
func lovelacePattern(p *utxoParser, t token) (UTxO, error) {
	rest := t.from(len("lovelace"))
	next := func() {
		if rest.text == "" {
			rest = p.tok
			p.advance()
		}
	}
	if next(); !strings.HasPrefix(rest.text, ">=") {
		return UTxO{}, p.fail(rest, nil, "want lovelace>=N")
	}
	rest = rest.from(len(">="))
	next()
	n, err := strconv.ParseUint(rest.text, 10, 64)
	if err != nil {
		return UTxO{}, p.fail(rest, err, "want a number of lovelace after lovelace>=")
	}
	return MinLovelace(n), nil
}

func credentialPattern(p *utxoParser, t token) (UTxO, error) {
	i := strings.IndexByte(t.text, '/')
	left, right := t.upTo(i), t.from(i+1)
	var arms []UTxO
	for _, side := range []struct {
		t    token
		not  address.Role
		make func(chain.Hash28) UTxO
		name string
	}{
		{left, address.StakeRole, Payment, "stake"},
		{right, address.PaymentRole, Stake, "payment"},
	} {
		if side.t.text == "*" {
			continue
		}
		m, err := address.ParseCredential(side.t.text)
		if err != nil {
			return UTxO{}, p.fail(side.t, err, "%v", err)
		}
		if m.Role == side.not {
			return UTxO{}, p.fail(side.t, nil, "a %s credential on the wrong side of the slash (want PAYMENT/STAKE)", side.name)
		}
		arms = append(arms, side.make(m.Hash))
	}
	return AllOf(arms...), nil
}

// refPattern reads *@TXID, INDEX@TXID and TXID#INDEX.
func refPattern(p *utxoParser, t token) (UTxO, error) {
	if id, ok := strings.CutPrefix(t.text, "*@"); ok {
		h, err := chain.ParseHash(id)
		if err != nil {
			return UTxO{}, p.fail(t.from(2), err, "%v", err)
		}
		return OutputsOf(h), nil
	}
	r, err := parseRef(p.fail, t)
	if err != nil {
		return UTxO{}, err
	}
	return Inputs(r), nil
}

type failer func(t token, cause error, format string, args ...any) error

// parseRef reads INDEX@TXID or TXID#INDEX.
func parseRef(fail failer, t token) (r chain.TxIn, err error) {
	i := strings.IndexByte(t.text, '@')
	if i < 0 {
		if r, err = chain.ParseTxIn(t.text); err != nil {
			return r, fail(t, err, "%v", err)
		}
		return r, nil
	}
	n, err := strconv.ParseUint(t.text[:i], 10, 32)
	if err != nil {
		return r, fail(t.upTo(i), err, "want an output's index, or *, before the @")
	}
	if r.ID, err = chain.ParseHash(t.text[i+1:]); err != nil {
		return r, fail(t.from(i+1), err, "%v", err)
	}
	r.Index = uint32(n)
	return r, nil
}

// errName is the cause where an asset's name is wrong.
var errName = errors.New("an asset's name is at most 32 bytes, as hexadecimal digits")

// parseAsset reads POLICY.* or POLICY.NAME.
func parseAsset(fail failer, t token) (policy chain.Hash28, name []byte, any bool, err error) {
	i := strings.IndexByte(t.text, '.')
	if i < 0 {
		return policy, nil, false, fail(t, nil, "want POLICY.* or POLICY.NAME")
	}
	if policy, err = chain.ParseHash28(t.text[:i]); err != nil {
		return policy, nil, false, fail(t.upTo(i), err, "a policy: %v", err)
	}
	if t.text[i+1:] == "*" {
		return policy, nil, true, nil
	}
	if name, err = parseName(t.text[i+1:]); err != nil {
		return policy, nil, false, fail(t.from(i+1), err, "%v", err)
	}
	return policy, name, false, nil
}
