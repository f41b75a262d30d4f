package ourotail

import (
	"context"
	"errors"
	"sync"

	"github.com/ourotail/ourotail/follow"
)

// besides is what runs beside following. What goes wrong there ends it: what is
// read and written after that cannot be trusted.
type besides struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	errs []error
}

// start runs fn until it returns, which it does soon after ctx ends.
func (b *besides) start(fn func(context.Context) error) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := fn(b.ctx); err != nil && !errors.Is(err, b.ctx.Err()) {
			b.fail(err)
			b.cancel()
		}
	}()
	return done
}

func (b *besides) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, known := range b.errs {
		if errors.Is(known, err) {
			return
		}
	}
	b.errs = append(b.errs, err)
}

// join adds what went wrong to what following ended with, unless that says it. All
// that was started has ended.
func (b *besides) join(err error) error {
	if len(b.errs) == 0 {
		return err
	}
	var fatal *follow.FatalError
	if !errors.As(err, &fatal) {
		return errors.Join(b.errs...) // following was ended, for these
	}
	all := []error{fatal}
	for _, e := range b.errs {
		if !errors.Is(fatal, e) {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}
