package chainsync

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ourotail/ourotail/chain"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(benchServerEnv); spec != "" {
		var path string
		var blocks, size int
		var batch bool
		if _, err := fmt.Sscan(spec, &path, &blocks, &size, &batch); err != nil {
			panic(err)
		}
		panic(benchServer(path, blocks, size, batch))
	}
	goleak.VerifyTestMain(m)
}

// TestFollow follows a short chain from an intersection to the tip, through a
// fork, in segments of every awkward size.
func TestFollow(t *testing.T) {
	const blocks = 300
	type said struct {
		kind   chain.MessageKind
		height uint64
	}
	for _, cut := range []int{0, 1, 2, 7, 100} {
		path := serve(t, func(p *peer) error {
			p.cut = cut
			if err := p.shake(); err != nil {
				return err
			}
			if _, err := p.find(); err != nil {
				return err
			}
			if err := p.send(5, intersectFound(pointAt(3), tipAt(blocks))); err != nil {
				return err
			}
			var answers [][]byte
			answers = append(answers, rollBackward(pointAt(3), tipAt(blocks)))
			for h := uint64(4); h <= blocks; h++ {
				answers = append(answers, rollForward(block(h, h*20, 100+int(h)*7), tipAt(blocks)))
				if h == 150 {
					answers = append(answers, rollBackward(pointAt(148), tipAt(blocks)),
						rollForward(block(149, 2981, 200), tipAt(blocks)), rollForward(block(150, 3001, 200), tipAt(blocks)))
				}
			}
			owed := 0
			for len(answers) > 0 {
				for owed == 0 {
					n, err := p.requests()
					if err != nil {
						return err
					}
					owed += n
				}
				if err := p.send(5, answers[0]); err != nil {
					return err
				}
				answers, owed = answers[1:], owed-1
			}
			if owed == 0 {
				if _, err := p.requests(); err != nil {
					return err
				}
			}
			if err := p.send(5, awaitReply); err != nil {
				return err
			}
			return p.hold()
		})
		ctx := testContext(t)
		c, err := Dial(ctx, testConfig(path))
		if err != nil {
			t.Fatal(err)
		}
		found, ok, tip, err := c.Intersect(ctx, []chain.Point{pointAt(5), pointAt(3), {}})
		if err != nil || !ok || found != pointAt(3) || tip != tipAt(blocks) {
			t.Fatalf("intersect: %v %v %v %v", found, ok, tip, err)
		}
		var got []chain.Message
		for len(got) == 0 || got[len(got)-1].Kind != chain.AwaitReply {
			b, err := c.Next(ctx)
			if err != nil {
				t.Fatalf("cut %d: after %d messages: %v", cut, len(got), err)
			}
			for _, m := range b.List {
				m.Raw = bytes.Clone(m.Raw)
				got = append(got, m)
			}
			b.Release()
		}
		if len(got) != blocks-3+1+3+1 {
			t.Fatalf("%d messages", len(got))
		}
		want := []said{{chain.RollBackward, 3}}
		for h := uint64(4); h <= blocks; h++ {
			want = append(want, said{chain.RollForward, h})
			if h == 150 {
				want = append(want, said{chain.RollBackward, 148}, said{chain.RollForward, 149}, said{chain.RollForward, 150})
			}
		}
		for i, w := range want {
			m := got[i]
			if m.Kind != w.kind || m.Tip != tipAt(blocks) {
				t.Fatalf("message %d: %v, want %v", i, m.Kind, w)
			}
			if w.kind == chain.RollBackward {
				if m.Point != pointAt(w.height) {
					t.Fatalf("message %d: back to %v", i, m.Point)
				}
				continue
			}
			h, ok := blockHeight(m.Raw)
			if !ok || uint64(h) != w.height {
				t.Fatalf("message %d: height %d %v, want %d", i, h, ok, w.height)
			}
			if wantRaw := block(w.height, w.height*20, 100+int(w.height)*7); len(m.Raw) != 200 && !bytes.Equal(m.Raw, wantRaw) {
				t.Fatalf("message %d: wrong bytes", i)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
