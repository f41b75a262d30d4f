package chain

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Token is a cursor as it is given to people and programs to keep: with the magic
// of its network, and a checksum, so that what was cut off or mistyped is not taken
// for a place that never was. Its text is opaque to them; its alphabet is that of a
// URL's path.
type Token struct {
	Magic uint32
	Cursor
}

// TokenMax is the length of the longest text of a token, in bytes.
const TokenMax = 1 + 10 + 1 + 2*(20+1+64+1+19) + 1 + 10 + 1 + 1 + 8

// String returns the text.
func (t Token) String() string {
	s := strconv.FormatUint(uint64(t.Magic), 10) + ":" + t.Cursor.String()
	return s + ":" + fmt.Sprintf("%08x", tokenSum(s))
}

func tokenSum(s string) uint32 { return crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)) }

// ParseToken reads the text of a token. Errors wrap ErrCursor.
func ParseToken(s string) (t Token, err error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || len(s) > TokenMax {
		return t, fmt.Errorf("%w: %.80q", ErrCursor, s)
	}
	if s[i+1:] != fmt.Sprintf("%08x", tokenSum(s[:i])) {
		return t, fmt.Errorf("%w: %q is damaged: its checksum is wrong", ErrCursor, s)
	}
	magic, cursor, ok := strings.Cut(s[:i], ":")
	n, err := strconv.ParseUint(magic, 10, 32)
	if !ok || err != nil {
		return t, fmt.Errorf("%w: %q names no network", ErrCursor, s)
	}
	t.Magic = uint32(n)
	t.Cursor, err = ParseCursor(cursor)
	return t, err
}

// MarshalText implements encoding.TextMarshaler with the form of String.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; see ParseToken.
func (t *Token) UnmarshalText(text []byte) (err error) {
	*t, err = ParseToken(string(text))
	return err
}
