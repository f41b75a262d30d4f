package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
)

// walTail is what a write-ahead file holds, as Badger will replay it: whole
// transactions from its beginning to the first that is not.
type walTail struct {
	path   string
	number int
	oldest uint64 // versions; 0 if it holds no transaction
	newest uint64
	end    int64 // where the last whole transaction ends
	size   int64
}

// Badger's log files: a header, then entries: two bytes of flags, lengths of key
// and value and an expiry as uvarints, key, value, CRC-32C. A key ends in its
// version, counted down from the largest. A transaction is entries with walTxn
// and then one with walEnd, whose value is the version in decimal.
const (
	walHeader = 20
	walTxn    = 1 << 6
	walEnd    = 1 << 7
)

var errTorn = errors.New("torn")

// readWAL reads a write-ahead file. Only reading can fail: where the file is torn
// its transactions end.
func readWAL(path string) (t walTail, err error) {
	t.path, t.end = path, walHeader
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return t, err
	}
	t.size = info.Size()
	if t.size < walHeader {
		t.end = t.size
		return t, nil
	}
	r := walReader{r: bufio.NewReaderSize(io.NewSectionReader(f, walHeader, t.size-walHeader), 1<<18)}
	version := uint64(0) // of the transaction being read
	for {
		meta, key, value, err := r.entry()
		if errors.Is(err, errTorn) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		switch {
		case len(key) < 8:
			return t, nil
		case meta&walTxn != 0:
			v := math.MaxUint64 - binary.BigEndian.Uint64(key[len(key)-8:])
			if version != 0 && version != v {
				return t, nil
			}
			version = v
		case meta&walEnd != 0:
			v, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil || v != version {
				return t, nil
			}
			if t.oldest == 0 {
				t.oldest = v
			}
			t.newest = max(t.newest, v)
			t.end = walHeader + r.read
			version = 0
		default: // we write no single entries
			return t, nil
		}
	}
}

type walReader struct {
	r    *bufio.Reader
	read int64 // bytes of whole entries
	buf  []byte
}

// entry reads one; errTorn where none is whole. Key and value are valid until the next.
func (r *walReader) entry() (meta byte, key, value []byte, err error) {
	b := r.buf[:0]
	next := func() byte {
		c, e := r.r.ReadByte()
		if e != nil && err == nil {
			err = torn(e)
		}
		b = append(b, c)
		return c
	}
	number := func() (n uint64) {
		for shift := 0; shift < 64; shift += 7 {
			c := next()
			n |= uint64(c&0x7f) << shift
			if c < 0x80 || err != nil {
				return n
			}
		}
		err = errTorn
		return 0
	}
	meta = next()
	next()
	klen, vlen := number(), number()
	number()
	if err == nil && (klen == 0 || klen > 1<<16 || vlen > 1<<30) {
		err = errTorn
	}
	if err != nil {
		return 0, nil, nil, err
	}
	head := len(b)
	for need := head + int(klen+vlen) + 4; len(b) < need; { // by pieces: a wrong length must not cost memory
		n := min(need-len(b), 1<<16)
		b = append(b, make([]byte, n)...)
		if _, err := io.ReadFull(r.r, b[len(b)-n:]); err != nil {
			return 0, nil, nil, torn(err)
		}
	}
	r.buf = b
	body := len(b) - 4
	if crc32.Checksum(b[:body], castagnoli) != binary.BigEndian.Uint32(b[body:]) {
		return 0, nil, nil, errTorn
	}
	r.read += int64(len(b))
	return meta, b[head : head+int(klen)], b[head+int(klen) : body], nil
}

// torn tells the end of a file from a failure to read it.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
