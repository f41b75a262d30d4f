package store

import "github.com/ourotail/ourotail/internal/trial"

// WithTrial returns options under which a test is told of each transaction
// before it is written:
//
//	write   a commit, a sweep or an undo that fits one transaction
//	part    a part of the redo log, before it is sealed
//	seal    the seal of the redo log, with which its commit counts as made
//	apply   some of a sealed log's operations
//	head    the head of a sealed log, which ends it
//	drop    the removal of an applied log's parts
//	undo    the newest blocks taken back, as many as fit
//	sweep   blocks swept that did not fit a commit
//	index   a slice of the indexes
func (o Options) WithTrial(t *trial.Trial) Options {
	if t == nil {
		return o
	}
	if t.MemTable > 0 {
		o.memTable = t.MemTable
	}
	o.noCompact = o.noCompact || t.Unmerged
	if t.Step != nil {
		o.hook = func(step string) error {
			t.Step(step)
			return nil
		}
	}
	return o
}
