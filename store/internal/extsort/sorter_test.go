package extsort

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// keysOf draws n keys of 0 to 40 bytes, many of them alike.
func keysOf(rnd *rand.Rand, n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		k := make([]byte, 40)
		binary.BigEndian.PutUint64(k, uint64(rnd.IntN(4)))
		binary.BigEndian.PutUint64(k[16:], uint64(rnd.IntN(n)))
		keys[i] = k[:rnd.IntN(41)]
	}
	return keys
}

func sorted(t *testing.T, s *Sorter) (got [][]byte) {
	t.Helper()
	for k, err := range s.Sorted() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, bytes.Clone(k))
	}
	return got
}

// TestSorted: whatever is added comes back in order, each key once, out of memory
// or out of any number of runs.
func TestSorted(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		keys := keysOf(rnd, rnd.IntN(3000))
		if seed%4 == 0 {
			for range 20 { // so that chunks are filled
				keys = append(keys, bytes.Repeat([]byte{byte(rnd.Uint32())}, KeyMax-rnd.IntN(9)))
			}
		}
		s := New(t.TempDir(), 1<<(12+rnd.IntN(10)))
		for _, k := range keys {
			if err := s.Add(k); err != nil {
				t.Fatal(err)
			}
		}
		if s.Len() != int64(len(keys)) {
			t.Errorf("%d keys, %d were added", s.Len(), len(keys))
		}
		slices.SortFunc(keys, bytes.Compare)
		want := slices.CompactFunc(keys, bytes.Equal)
		if got := sorted(t, s); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("seed %d: %d keys came out of %d, in %d runs", seed, len(got), len(want), len(s.runs))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsLeftBehind: the file has no name.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s := New(dir, 1<<12)
	for i := range 1000 {
		if err := s.Add(binary.BigEndian.AppendUint64(nil, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.runs) == 0 {
		t.Fatal("nothing was written")
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		t.Error(there, err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestErrors: a file that cannot be made, written or read is an error, never a key
// less.
func TestErrors(t *testing.T) {
	fill := func(s *Sorter) (err error) {
		for i := 0; i < 1000 && err == nil; i++ {
			err = s.Add(binary.BigEndian.AppendUint64(nil, uint64(i)))
		}
		return err
	}
	if err := fill(New(t.TempDir()+"/none", 1<<12)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	s := New(t.TempDir(), 1<<12)
	if err := fill(s); err != nil {
		t.Fatal(err)
	}
	if err := s.file.Truncate(s.end / 2); err != nil {
		t.Fatal(err)
	}
	s.empty()
	var last error
	for _, err := range s.Sorted() {
		last = err
	}
	if last == nil {
		t.Error("half of the file is gone, and nobody says so")
	}
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := fill(s); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if err := s.Add(make([]byte, KeyMax+1)); err == nil {
		t.Error("a key too long is taken")
	}
}

// BenchmarkSorted sorts a million keys of 90 bytes in 30 runs. One operation is a key.
func BenchmarkSorted(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := New(b.TempDir(), 4<<20)
	key := make([]byte, 90)
	for range b.N {
		binary.BigEndian.PutUint64(key[1:], rnd.Uint64())
		if err := s.Add(key); err != nil {
			b.Fatal(err)
		}
	}
	for _, err := range s.Sorted() {
		if err != nil {
			b.Fatal(err)
		}
	}
	_ = s.Close()
}
