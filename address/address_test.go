package address

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/bech32"
)

// Test vectors of CIP-19: one key, one stake key, one script, one pointer.
const (
	vectorPayment = "9493315cd92eb5d8c4304e67b7e16ae36d61d34502694657811a2c8e"
	vectorStake   = "337b62cfff6403a06a3acbc34f8c46003c69fe79a3628cefa9c47251"
	vectorScript  = "c37b1b5dc0669f1d3c61a6fddb2e8fde96be87b881c60bce8e8d542f"
	vectorKey     = "addr_vk1w0l2sr2zgfm26ztc6nl9xy8ghsk5sh6ldwemlpmp9xylzy4dtf7st80zhd"
	vectorStakeVk = "stake_vk1px4j0r2fk7ux5p23shz8f3y5y2qam7s954rgf3lg5merqcj6aetsft99wu"
	vectorScriptT = "script1cda3khwqv60360rp5m7akt50m6ttapacs8rqhn5w342z7r35m37"
)

var vectors = []struct {
	text    string
	kind    Kind
	payment string // k or s and the hash
	stake   string
}{
	{"addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x", Base, "k" + vectorPayment, "k" + vectorStake},
	{"addr1z8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs9yc0hh", Base, "s" + vectorScript, "k" + vectorStake},
	{"addr1yx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs2z78ve", Base, "k" + vectorPayment, "s" + vectorScript},
	{"addr1x8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shskhj42g", Base, "s" + vectorScript, "s" + vectorScript},
	{"addr1gx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrzqf96k", Pointer, "k" + vectorPayment, ""},
	{"addr128phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtupnz75xxcrtw79hu", Pointer, "s" + vectorScript, ""},
	{"addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8", Enterprise, "k" + vectorPayment, ""},
	{"addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx", Enterprise, "s" + vectorScript, ""},
	{"stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw", Reward, "", "k" + vectorStake},
	{"stake178phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcccycj5", Reward, "", "s" + vectorScript},
	{"addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae", Base, "k" + vectorPayment, "k" + vectorStake},
	{"addr_test1zrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgsxj90mg", Base, "s" + vectorScript, "k" + vectorStake},
	{"addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx", Base, "k" + vectorPayment, "s" + vectorScript},
	{"addr_test1xrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs4p04xh", Base, "s" + vectorScript, "s" + vectorScript},
	{"addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky", Pointer, "k" + vectorPayment, ""},
	{"addr_test12rphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtupnz75xxcryqrvmw", Pointer, "s" + vectorScript, ""},
	{"addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz", Enterprise, "k" + vectorPayment, ""},
	{"addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr", Enterprise, "s" + vectorScript, ""},
	{"stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn", Reward, "", "k" + vectorStake},
	{"stake_test17rphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcljw6kf", Reward, "", "s" + vectorScript},
}

func credText(c Credential, ok bool) string {
	switch {
	case !ok:
		return ""
	case c.Script:
		return "s" + hex.EncodeToString(c.Hash[:])
	}
	return "k" + hex.EncodeToString(c.Hash[:])
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		addr, err := Parse(v.text)
		if err != nil {
			t.Errorf("%s: %v", v.text, err)
			continue
		}
		if got := KindOf(addr); got != v.kind {
			t.Errorf("%s: kind %s, want %s", v.text, got, v.kind)
		}
		if got := credText(Payment(addr)); got != v.payment {
			t.Errorf("%s: payment %s, want %s", v.text, got, v.payment)
		}
		if got := credText(Stake(addr)); got != v.stake {
			t.Errorf("%s: stake %s, want %s", v.text, got, v.stake)
		}
		if got := Text(addr); got != v.text {
			t.Errorf("%s: text %s", v.text, got)
		}
		id, ok := NetworkID(addr)
		if want := !strings.Contains(v.text, "_test"); !ok || (id == 1) != want {
			t.Errorf("%s: network %d", v.text, id)
		}
		place, ok := Target(addr)
		if ok != (v.kind == Pointer) || ok && place != (Place{2498243, 27, 3}) {
			t.Errorf("%s: target %v, %v", v.text, place, ok)
		}
		for _, text := range []string{hex.EncodeToString(addr), strings.ToUpper(v.text), strings.ToUpper(hex.EncodeToString(addr))} {
			if back, err := Parse(text); err != nil || !bytes.Equal(back, addr) {
				t.Errorf("%s: %x, %v", text, back, err)
			}
		}
	}
}

// TestNearlyMainnet: only network id 1 is mainnet, whatever else the nibble
// may hold.
func TestNearlyMainnet(t *testing.T) {
	for id := range byte(16) {
		addr := append([]byte{0x60 | id}, make([]byte, HashSize)...)
		want := "addr_test1"
		if id == 1 {
			want = "addr1"
		}
		if got := Text(addr); !strings.HasPrefix(got, want) {
			t.Errorf("network %d: %s", id, got)
		}
		if back, err := Parse(Text(addr)); err != nil || !bytes.Equal(back, addr) {
			t.Errorf("network %d: %x, %v", id, back, err)
		}
	}
}

var byron = []struct {
	text  string
	magic uint32
	has   bool
}{
	{"Ae2tdPwUPEZFRbyhz3cpfC2CumGzNkFBN2L42rcUc2yjQpEkxDbkPodpMAi", 0, false},
	{"37btjrVyb4KDXBNC4haBVPCrro8AQPHwvCMp3RFhhSVWwfFmZ6wwzSK6JK1hY6wHNmtrpTf1kdbva8TCneM2YsiXT7mrzT21EacHnPpz5YyUdj64na", 1097911063, true},
	{"FHnt4NL7yPXvDWHa8bVs73UEUdJd64VxWXSFNqetECtYfTd9TtJguJ14Lu3feth", 2, true},
	{"DdzFFzCqrht7PQiAhzrn6rNNoADJieTWBt8KeK9BZdUsGyX9ooYD9NpMCTGjQoUKcHN47g8JMXhvKogsGpQHtiQ65fZwiypjrC6d3a4Q", 0, false},
}

func TestByron(t *testing.T) {
	for _, v := range byron {
		addr, err := Parse(v.text)
		if err != nil {
			t.Errorf("%s: %v", v.text, err)
			continue
		}
		if KindOf(addr) != Byron || Text(addr) != v.text {
			t.Errorf("%s: %s, %s", v.text, KindOf(addr), Text(addr))
		}
		magic, has, ok := ByronMagic(addr)
		if !ok || has != v.has || magic != v.magic {
			t.Errorf("%s: magic %d, %v, %v", v.text, magic, has, ok)
		}
		id, ok := NetworkID(addr)
		if !ok || (id == 1) != !v.has {
			t.Errorf("%s: network %d, %v", v.text, id, ok)
		}
		if _, ok := Payment(addr); ok {
			t.Errorf("%s has a payment credential", v.text)
		}
		if _, ok := Stake(addr); ok {
			t.Errorf("%s has a stake credential", v.text)
		}
	}
}

// TestOddBytes has what the chain holds beside tidy addresses. None is
// changed.
func TestOddBytes(t *testing.T) {
	payload := strings.Repeat("11", HashSize)
	overlong := strings.Repeat("ff", 95) + "7f"
	for _, test := range []struct {
		name    string
		addr    string
		kind    Kind
		payment bool
		stake   bool
		hrp     string // empty: hexadecimal
	}{
		{"empty", "", Unknown, false, false, ""},
		{"one byte", "00", Unknown, false, false, ""},
		{"base, a byte short", "00" + payload + payload[2:], Unknown, false, false, ""},
		{"base, trailing bytes", "00" + payload + payload + "abcdef", Base, true, true, "addr_test"},
		{"enterprise, trailing bytes", "71" + payload + strings.Repeat("00", 200), Enterprise, true, false, "addr"},
		{"enterprise, a byte short", "61" + payload[2:], Unknown, false, false, ""},
		{"pointer without a place", "41" + payload, Unknown, false, false, ""},
		{"pointer cut short", "41" + payload + "8181", Pointer, true, false, "addr"},
		{"pointer beyond 64 bits", "41" + payload + overlong + overlong + overlong, Pointer, true, false, "addr"},
		{"reward, trailing bytes", "e0" + payload + "00", Reward, false, true, "stake_test"},
		{"header 9", "91" + payload, Unknown, false, false, ""},
		{"header 13", "d1" + payload + payload, Unknown, false, false, ""},
		{"Byron header, no CBOR", "82ffff", Unknown, false, false, ""},
		{"Byron header, another number", "83" + payload, Unknown, false, false, ""},
	} {
		addr, err := hex.DecodeString(test.addr)
		if err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(addr)
		if got := KindOf(addr); got != test.kind {
			t.Errorf("%s: kind %s, want %s", test.name, got, test.kind)
		}
		if _, ok := Payment(addr); ok != test.payment {
			t.Errorf("%s: payment %v", test.name, ok)
		}
		if _, ok := Stake(addr); ok != test.stake {
			t.Errorf("%s: stake %v", test.name, ok)
		}
		if _, ok := Target(addr); ok {
			t.Errorf("%s has a target", test.name)
		}
		text := Text(addr)
		if test.hrp == "" {
			if text != test.addr {
				t.Errorf("%s: text %s", test.name, text)
			}
		} else {
			hrp, groups, err := bech32.DecodeNoLimit(text)
			if err != nil || hrp != test.hrp {
				t.Errorf("%s: %s: %v", test.name, text, err)
			}
			if b, err := bech32.ConvertBits(groups, 5, 8, false); err != nil || !bytes.Equal(b, addr) {
				t.Errorf("%s: %s holds %x, %v", test.name, text, b, err)
			}
		}
		if text != "" {
			if back, err := Parse(text); err != nil || !bytes.Equal(back, addr) {
				t.Errorf("%s: parsed %x, %v", test.name, back, err)
			}
		}
		if !bytes.Equal(before, addr) {
			t.Errorf("%s: the bytes were changed", test.name)
		}
	}
}

// TestHugeByron: base58 is quadratic, so what no chain holds is not written in
// it.
func TestHugeByron(t *testing.T) {
	for size, text := range map[int]string{maxBase58 - 9: "base58", maxBase58: "hexadecimal"} {
		addr := append([]byte{0x82, 0xd8, 24, 0x5a, 0, 0, byte(size >> 8), byte(size)}, make([]byte, size+1)...)
		if KindOf(addr) != Byron {
			t.Fatal("not of Byron")
		}
		if got := Text(addr); (got == hex.EncodeToString(addr)) != (len(addr) > maxBase58) {
			t.Errorf("%d bytes are not written in %s", len(addr), text)
		}
	}
	if _, err := Parse(strings.Repeat("z", 1<<20)); !errors.Is(err, ErrText) {
		t.Error(err)
	}
}

func TestTarget(t *testing.T) {
	head := "40" + strings.Repeat("11", HashSize)
	for tail, want := range map[string]Place{
		"000000":                             {},
		"01027f":                             {1, 2, 127},
		"8000ff7f" + "8100":                  {0, 16383, 128},
		"81ffffffffffffffff7f" + "00" + "00": {1<<64 - 1, 0, 0},
	} {
		addr, err := hex.DecodeString(head + tail)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Target(addr); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", tail, got, ok, want)
		}
	}
	for _, tail := range []string{"00", "0000", "000080", "82ffffffffffffffff7f0000"} {
		addr, err := hex.DecodeString(head + tail)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Target(addr); ok {
			t.Errorf("%s: %v", tail, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	base := vectors[0].text
	wrongPrefix, err := bech32.EncodeFromBase256("addr_test", mustParse(t, base))
	if err != nil {
		t.Fatal(err)
	}
	bech32m, err := bech32.ConvertBits(mustParse(t, base), 8, 5, true)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bech32.EncodeM("addr", bech32m)
	if err != nil {
		t.Fatal(err)
	}
	short, err := bech32.EncodeFromBase256("addr", []byte{0x61, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":                 "",
		"spaces":                "  ",
		"odd number of digits":  "abc",
		"a word":                "hello",
		"wrong checksum":        base[:len(base)-1] + "q",
		"mixed case":            strings.ToUpper(base[:20]) + base[20:],
		"prefix of another net": wrongPrefix,
		"bech32m":               m,
		"too few bytes":         short,
		"prefix alone":          "addr1",
		"Byron, one letter off": byron[0].text[:len(byron[0].text)-1] + "j",
		"Bitcoin":               "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
	} {
		if b, err := Parse(text); !errors.Is(err, ErrText) {
			t.Errorf("%s: %x, %v", name, b, err)
		}
	}
}

func mustParse(t *testing.T, text string) []byte {
	t.Helper()
	b, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRewardAddress(t *testing.T) {
	for _, v := range vectors {
		addr := mustParse(t, v.text)
		c, ok := Stake(addr)
		if !ok {
			continue
		}
		id, _ := NetworkID(addr)
		account := c.RewardAddress(id)
		if back, ok := Stake(account); !ok || back != c || KindOf(account) != Reward {
			t.Errorf("%s: %x", v.text, account)
		}
		if v.kind == Reward && !bytes.Equal(account, addr) {
			t.Errorf("%s: %x", v.text, account)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	base, pointer, old := mustParse(t, vectors[0].text), mustParse(t, vectors[4].text), mustParse(t, byron[1].text)
	got := testing.AllocsPerRun(100, func() {
		for _, a := range [][]byte{base, pointer, old} {
			KindOf(a)
			Payment(a)
			Stake(a)
			Target(a)
			NetworkID(a)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
