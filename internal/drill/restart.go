package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// heldK is more than the whole chain of the day on which the consumer is killed:
// however old a cursor it kept, or if it kept none, ourotail can go on from there.
const heldK = 432

// kept is the file in which the consumer keeps its cursor.
func (s *stage) kept() string { return filepath.Join(s.dir, "cursor") }

// begin starts the consumer and returns where its lines go.
func (s *stage) begin(ctx context.Context) (to io.Writer, err error) {
	if s.consumer, err = startConsumer(ctx, s.cfg.Consumer, s.env, s.log); err != nil {
		return nil, &consumerError{err}
	}
	to = s.consumer.input
	if s.stream != nil {
		to = io.MultiWriter(s.stream, to)
	}
	return to, nil
}

// killConsumer kills the consumer, has something happen, and starts it again with the
// lines behind the cursor that it has kept. ourotail is killed with it.
func (s *stage) killConsumer(ctx context.Context, happens func() error) error {
	select {
	case <-s.consumer.done: // before we did anything to it
		return &consumerError{s.consumer.early()}
	case <-s.tail.done:
		if err := s.blame(s.tail); err != nil {
			return err
		}
		return s.tail.failure()
	default:
	}
	s.consumer.kill()
	s.tail.kill()
	<-s.tail.done
	s.result.Consumer++
	if err := happens(); err != nil {
		return err
	}
	cursor, err := s.acknowledged()
	if err != nil {
		return &consumerError{err}
	}
	to, err := s.begin(ctx)
	if err != nil {
		return err
	}
	left, ok := s.feed.rewind(cursor, to)
	if !ok {
		return &consumerError{fmt.Errorf("the cursor that it kept is none that it was given: %s", shorten(cursor, 200))}
	}
	if cursor == "" {
		s.note("the consumer was killed, had kept no cursor, and begins anew")
	} else {
		s.note("the consumer was killed, and goes on behind %s", brief(strings.SplitN(cursor, ":", 3)[1]))
	}
	if s.stream != nil { // what it had not acknowledged comes again, or was undone
		if err := s.stream.Truncate(left); err != nil {
			return err
		}
		if _, err := s.stream.Seek(left, io.SeekStart); err != nil {
			return err
		}
	}
	return s.up(ctx)
}

// acknowledged returns the cursor that the consumer has kept: the first line of its
// file, what follows is its own. Empty if there is none.
func (s *stage) acknowledged() (string, error) {
	f, err := os.Open(s.kept())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, chain.TokenMax+16)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return "", nil
	}
	if _, err := chain.ParseToken(line); err != nil {
		return "", fmt.Errorf("the first line of OUROTAIL_DRILL_CURSOR: %w", err)
	}
	return line, nil
}

// consumerKilled kills early and late, with and without a fork while it is down.
func consumerKilled(ctx context.Context, s *stage) error {
	for i := range 12 {
		if err := s.grow(1 + s.r.IntN(3)); err != nil {
			return err
		}
		switch i % 3 {
		case 0: // while it reads
			if err := s.pause(ctx, time.Duration(s.r.Int64N(int64(60*time.Millisecond)))); err != nil {
				return err
			}
		case 1:
			if err := s.arrive(ctx); err != nil {
				return err
			}
		default: // just when it is told of a fork
			if err := s.arrive(ctx); err != nil {
				return err
			}
			depth := 1 + s.r.IntN(8)
			if err := s.fork(depth, depth+1); err != nil {
				return err
			}
			if err := s.pause(ctx, time.Duration(s.r.Int64N(int64(20*time.Millisecond)))); err != nil {
				return err
			}
		}
		err := s.killConsumer(ctx, func() error {
			if i%2 == 1 {
				return nil
			}
			depth := 1 + s.r.IntN(10)
			return s.fork(depth, depth+1)
		})
		if err != nil {
			return err
		}
	}
	for range 3 { // whoever kept nothing has to have an undo too
		if err := s.arrive(ctx); err != nil {
			return err
		}
		depth := 2 + s.r.IntN(8)
		if err := s.fork(depth, depth+1); err != nil {
			return err
		}
	}
	return s.arrive(ctx)
}
