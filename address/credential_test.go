package address

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"
)

func bech(t *testing.T, hrp, digits string) string {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bech32.EncodeFromBase256(hrp, b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseCredential(t *testing.T) {
	_, key, err := decodeBech32(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDigits := hex.EncodeToString(key)
	for _, test := range []struct {
		text  string
		hash  string
		role  Role
		typed bool
		scr   bool
	}{
		{vectorKey, vectorPayment, PaymentRole, true, false},
		{vectorStakeVk, vectorStake, StakeRole, true, false},
		{vectorScriptT, vectorScript, AnyRole, true, true},
		{bech(t, "vk", keyDigits), vectorPayment, AnyRole, true, false},
		{bech(t, "vkh", vectorPayment), vectorPayment, AnyRole, true, false},
		{bech(t, "addr_vkh", vectorPayment), vectorPayment, PaymentRole, true, false},
		{bech(t, "stake_vkh", vectorStake), vectorStake, StakeRole, true, false},
		{keyDigits, vectorPayment, AnyRole, true, false},
		{vectorPayment, vectorPayment, AnyRole, false, false},
		{strings.ToUpper(vectorScript), vectorScript, AnyRole, false, false},
	} {
		m, err := ParseCredential(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if hex.EncodeToString(m.Hash[:]) != test.hash || m.Role != test.role || m.Typed != test.typed || m.Script != test.scr {
			t.Errorf("%s: %+v", test.text, m)
		}
		for _, script := range []bool{false, true} {
			if got, want := m.Is(Credential{m.Hash, script}), !test.typed || test.scr == script; got != want {
				t.Errorf("%s: matches script %v: %v", test.text, script, got)
			}
		}
		if m.Is(Credential{}) {
			t.Errorf("%s matches the zero hash", test.text)
		}
	}
}

func TestParseCredentialErrors(t *testing.T) {
	for _, text := range []string{
		"", "*", "ab", vectorPayment[2:], vectors[0].text, vectorScriptT + "q",
		bech(t, "vkh", "00"), bech(t, "vk", vectorPayment), bech(t, "addr_vkh", vectorPayment+"00"), bech(t, "pool", vectorPayment),
	} {
		if m, err := ParseCredential(text); !errors.Is(err, ErrCredential) {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}

func TestCredentialText(t *testing.T) {
	for _, v := range vectors {
		addr := mustParse(t, v.text)
		for role, get := range map[Role]func([]byte) (Credential, bool){PaymentRole: Payment, StakeRole: Stake} {
			c, ok := get(addr)
			if !ok {
				continue
			}
			m, err := ParseCredential(CredentialText(c, role))
			if err != nil || !m.Is(c) || !c.Script && m.Role != role {
				t.Errorf("%s: %+v, %v", CredentialText(c, role), m, err)
			}
		}
	}
	if got := CredentialText(Credential{}, AnyRole); !strings.HasPrefix(got, "vkh1") {
		t.Error(got)
	}
}
