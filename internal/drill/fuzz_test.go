package drill

import "testing"

// FuzzAnswer: a consumer may print anything.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("addr1 5\naddr2 7\n\n"))
	f.Add([]byte("addr1 99999999999999999999\n"))
	f.Add([]byte("a 1\na 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		sums, err := parseAnswer(text)
		if err != nil && sums != nil || err == nil && sums == nil {
			t.Fatalf("%v, %v", sums, err)
		}
		for a, n := range sums {
			if a == "" || n == 0 {
				t.Fatalf("%q has %d", a, n)
			}
		}
	})
}
