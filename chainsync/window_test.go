package chainsync

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ourotail/ourotail/chain"
)

func testWindow() window { return newWindow(Config{MaxInFlight: 100, QueueBytes: 8 << 20}) }

func forward(size int) *answer {
	return &answer{tag: tagRollForward, msg: chain.Message{Raw: make([]byte, size)}}
}

// answerOne counts a quick answer of a block below the tip by ahead blocks.
func answerOne(t *testing.T, w *window, size, ahead int) {
	t.Helper()
	if err := w.answered(forward(size)); err != nil {
		t.Fatal(err)
	}
	w.at(block(1000, 1, 60), chain.Tip{Point: pointAt(1), Height: chain.Height(1000 + ahead)})
}

// TestWindowOpensAndCloses: one request at first, many after a few quick
// answers, no more than there are blocks to the tip, one at the tip.
func TestWindowOpensAndCloses(t *testing.T) {
	w := testWindow()
	if n := w.ask(0); n != 1 {
		t.Fatalf("%d requests at first", n)
	}
	for range 300 {
		answerOne(t, &w, 1300, 1_000_000)
		w.ask(0)
	}
	if w.out < 50 || w.out > 100 {
		t.Fatalf("%d outstanding far from the tip", w.out)
	}
	for ahead := 150; ahead > 0; ahead-- {
		for w.out > ahead {
			answerOne(t, &w, 1300, ahead)
		}
		answerOne(t, &w, 1300, ahead)
		w.ask(0)
		if w.out > max(ahead, 1) {
			t.Fatalf("%d outstanding, %d blocks to the tip", w.out, ahead)
		}
	}
	for w.out > 0 {
		answerOne(t, &w, 1300, 0)
	}
	for range 5 { // at the tip, block after block, one request each
		if n := w.ask(0); n != 1 || !w.owes() {
			t.Fatalf("%d requests at the tip", n)
		}
		if err := w.answered(&answer{tag: tagAwaitReply}); err != nil || w.owes() {
			t.Fatal(err)
		}
		if n := w.ask(0); n != 0 {
			t.Fatalf("%d more requests while the node waits", n)
		}
		answerOne(t, &w, 1300, 0)
	}
}

// TestWindowAtAnUnknownTip: where heights cannot be told, "await" alone keeps
// the window at one.
func TestWindowAtAnUnknownTip(t *testing.T) {
	w := testWindow()
	for range 20 {
		if n := w.ask(0); n != 1 {
			t.Fatalf("%d requests", n)
		}
		if err := w.answered(&answer{tag: tagAwaitReply}); err != nil {
			t.Fatal(err)
		}
		if err := w.answered(forward(650)); err != nil {
			t.Fatal(err)
		}
		w.at([]byte{0x82, 1, 0x83}, chain.Tip{Point: pointAt(1), Height: 1000})
	}
}

// TestWindowStartsAgain: after a pause at the tip the window opens again when
// the node has more.
func TestWindowStartsAgain(t *testing.T) {
	w := testWindow()
	w.ask(0)
	if err := w.answered(&answer{tag: tagAwaitReply}); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		answerOne(t, &w, 1300, 100_000)
		w.ask(0)
	}
	if w.out < 50 {
		t.Errorf("%d outstanding", w.out)
	}
}

// TestWindowModel drives a window at random: outstanding requests never exceed
// the limit or the bytes they may bring, and there is always a way on.
func TestWindowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxOut := rapid.IntRange(1, 300).Draw(t, "max")
		bytes := rapid.IntRange(1000, 10<<20).Draw(t, "bytes")
		w := newWindow(Config{MaxInFlight: maxOut, QueueBytes: bytes})
		size := rapid.IntRange(0, 90_000).Draw(t, "size") // of every block, so that the estimate holds
		queued := 0
		settled := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if w.out < 0 || w.out > maxOut {
					t.Fatalf("%d outstanding of %d", w.out, maxOut)
				}
				if settled > 400 && queued+w.out*size > bytes+max(size, 32<<10) {
					t.Fatalf("%d bytes queued and %d requests of %d for %d", queued, w.out, size, bytes)
				}
				if queued == 0 && w.out == 0 && w.ask(0) == 0 {
					t.Fatal("stuck")
				}
			},
			"ask": func(*rapid.T) { w.ask(queued) },
			"take": func(*rapid.T) {
				queued = 0
				w.ask(0)
			},
			"block": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "n") {
					if w.out == 0 {
						break
					}
					if err := w.answered(forward(size)); err != nil {
						t.Fatal(err)
					}
					queued += size
					settled++
				}
				w.ahead = rapid.SampledFrom([]int{-1, 0, 1, 7, 1 << 20}).Draw(t, "ahead")
			},
			"back": func(t *rapid.T) {
				if w.out > 0 {
					if err := w.answered(&answer{tag: tagRollBackward}); err != nil {
						t.Fatal(err)
					}
				}
			},
			"await": func(t *rapid.T) {
				if w.owes() {
					if err := w.answered(&answer{tag: tagAwaitReply}); err != nil {
						t.Fatal(err)
					}
				}
			},
			"unasked": func(t *rapid.T) {
				if w.out == 0 && w.answered(forward(1)) == nil {
					t.Fatal("took an answer to nothing")
				}
				if w.awaits && w.answered(&answer{tag: tagAwaitReply}) == nil {
					t.Fatal("took a second await")
				}
			},
		})
	})
}
