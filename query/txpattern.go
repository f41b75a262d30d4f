package query

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/address"
	"github.com/ourotail/ourotail/chain"
)

func parseName(s string) ([]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) > 32 {
		return nil, errName
	}
	return b, nil
}

// ParseTx reads a transaction query, joined by and, or, not and parentheses:
//
//   - all
//     involves:ADDRESS      an output made or spent there; ADDRESS alone as well
//     mints:POLICY.*        minted or burnt under the policy
//     mints:POLICY.NAME     minted or burnt the asset
//     spends:INDEX@TXID     spent the output
//     script:HASH           carries the script; bech32 as well
//     {LABEL}               has metadata under the label; label:LABEL as well
//
// Errors are of type *SyntaxError.
func ParseTx(text string) (Tx, error) {
	p := parser[chain.AppliedTx, TxKey]{text: text, leaf: txPattern, some: func(arms []txNode) txNode {
		s := &some[chain.AppliedTx, TxKey]{arms: arms}
		speedUpTx(s)
		return s
	}}
	n, err := p.parse()
	if err != nil {
		return Tx{}, err
	}
	if a, ok := n.(all[chain.AppliedTx, TxKey]); ok && len(a) == 0 {
		n = nil
	}
	return Tx{n}, nil
}

type txParser = parser[chain.AppliedTx, TxKey]

func txPattern(p *txParser, t token) (txNode, error) {
	word, _, hasWord := strings.Cut(t.text, ":")
	value := t
	if hasWord {
		value = t.from(len(word) + 1)
	}
	is := func(w string) bool { return hasWord && strings.EqualFold(word, w) }
	switch {
	case t.text == "*":
		return EveryTx().node(), nil
	case strings.HasPrefix(t.text, "{"):
		return labelPattern(p, t, strings.TrimSuffix(t.text[1:], "}"), strings.HasSuffix(t.text, "}"))
	case is("label"):
		return labelPattern(p, value, value.text, true)
	case is("mints"):
		policy, name, any, err := parseAsset(p.fail, value)
		if err != nil {
			return nil, err
		}
		if any {
			return MintsPolicy(policy).n, nil
		}
		return MintsAsset(policy, name).n, nil
	case is("spends"):
		r, err := parseRef(p.fail, value)
		if err != nil {
			return nil, err
		}
		return Spends(r).n, nil
	case is("script"):
		m, err := address.ParseCredential(value.text)
		if err != nil {
			return nil, p.fail(value, err, "a script's hash: %v", err)
		}
		if m.Typed && !m.Script {
			return nil, p.fail(value, nil, "a key, not a script")
		}
		return InvolvesScript(m.Hash).n, nil
	case hasWord && !is("involves"):
		return nil, p.fail(t.upTo(len(word)), nil, "want one of involves, mints, spends, script, label before the colon")
	case strings.ContainsRune(t.text, '.'):
		return nil, p.fail(t, nil, "want mints: before an asset")
	case strings.ContainsAny(t.text, "@#"):
		return nil, p.fail(t, nil, "want spends: before an output")
	}
	b, err := address.Parse(value.text)
	if err != nil && value.text != "" {
		return nil, p.fail(value, err, "%v", err)
	}
	if !hasWord && address.KindOf(b) == address.Unknown {
		return nil, p.fail(t, nil, "no address: %d bytes of no known kind (such bytes are written involves:HEX)", len(b))
	}
	return Involves(b).n, nil
}

func labelPattern(p *txParser, t token, digits string, closed bool) (txNode, error) {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || !closed {
		return nil, p.fail(t, err, "want a metadata label as {NUMBER}")
	}
	return HasLabel(n).n, nil
}

// ParseBlock reads a block query: * for all, slots:FROM..TO for a range of
// slots with both ends included, slots:FROM.. for one without an end. Errors
// are of type *SyntaxError.
func ParseBlock(text string) (Block, error) {
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	t := token{text: strings.TrimSpace(text), start: start}
	t.end = start + len(t.text)
	fail := func(t token, cause error, reason string) (Block, error) {
		return Block{}, &SyntaxError{Text: text, Start: t.start, End: t.end, Reason: reason, Cause: cause}
	}
	if t.text == "*" {
		return EveryBlock(), nil
	}
	const word = "slots:"
	i := strings.Index(t.text, "..")
	if !t.begins(word) || i < len(word) {
		return fail(t, nil, "want *, slots:FROM..TO or slots:FROM..")
	}
	from, err := strconv.ParseUint(t.text[len(word):i], 10, 64)
	if err != nil {
		return fail(t.upTo(i).from(len(word)), err, "want a slot")
	}
	if t.text[i+2:] == "" {
		return SlotsFrom(chain.Slot(from)), nil
	}
	to, err := strconv.ParseUint(t.text[i+2:], 10, 64)
	if err != nil {
		return fail(t.from(i+2), err, "want a slot, or nothing for no end")
	}
	if to < from {
		return fail(t.from(len(word)), nil, "the range ends before it begins")
	}
	return Slots(chain.Slot(from), chain.Slot(to)), nil
}
