package follow

import "github.com/ourotail/ourotail/chain"

// gathered is what the store has taken and not written yet. The hub stays at the
// store's head meanwhile: nobody is subscribed, and who subscribes waits until it
// is written.
type gathered struct {
	newest chain.Link // of all
	main   chain.Link // the newest that is no boundary block, which the hub skips to; zero if there is none
}

// newest is the block below the open batch, on disk or gathered.
func (f *Follower) newest() chain.Link {
	if g := f.gathered.Load(); g != nil {
		return g.newest
	}
	return f.cfg.Store.Head()
}

// commitOrGather ends a full batch: it is written now if somebody is subscribed
// or it can be undone, and may be written later if not.
func (f *Follower) commitOrGather() error {
	if f.open.journal || len(f.open.blocks) == 0 {
		return f.commit()
	}
	switch done, err := f.gather(); {
	case err != nil:
		return err
	case !done:
		return f.commit()
	}
	f.account()
	f.open.reset()
	return nil
}

// gather hands the open batch to the store; false if somebody is subscribed.
func (f *Follower) gather() (bool, error) {
	f.publish.Lock()
	defer f.publish.Unlock()
	if f.cfg.Hub.Subscribers() > 0 {
		return false, nil
	}
	if err := f.cfg.Store.Gather(f.open.blocks); err != nil {
		return false, &FatalError{Op: "committing to the store", At: f.newest().At(), Cause: err}
	}
	f.resolver.Committed()
	var g gathered
	if old := f.gathered.Load(); old != nil {
		g = *old
	}
	for _, e := range f.open.blocks {
		if g.newest = e.Link; !e.Boundary {
			g.main = e.Link
		}
	}
	f.gathered.Store(&g)
	if f.cfg.Store.Head() == g.newest { // it has just written all
		f.written()
	}
	return true, nil
}

// flush has the store write what was gathered.
func (f *Follower) flush() error {
	if f.gathered.Load() == nil {
		return nil
	}
	f.publish.Lock()
	defer f.publish.Unlock()
	return f.flushLocked()
}

func (f *Follower) flushLocked() error {
	if f.gathered.Load() == nil {
		return nil
	}
	if err := f.cfg.Store.Flush(); err != nil {
		return &FatalError{Op: "committing to the store", At: f.cfg.Store.Head().At(), Cause: err}
	}
	f.written()
	return nil
}

// written is called under the publish lock once all that was gathered is on disk.
func (f *Follower) written() {
	g := f.gathered.Swap(nil)
	if g == nil {
		return
	}
	if !g.main.Point.IsOrigin() {
		f.cfg.Hub.Skip(g.main.At())
	}
	f.status.update(func(s *Status) { s.Head = f.cfg.Store.Head() })
}
