package ourotail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/chainsync"
	"github.com/ourotail/ourotail/follow"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/store"
)

// DefaultAuditSample is how many outputs of each kind an audit looks at.
const DefaultAuditSample = 1000

// ErrNothingToAudit is wrapped when there is nothing that the node could be asked
// about: no block yet, or a head in Byron, whose ledger answers no such questions.
var ErrNothingToAudit = errors.New("nothing to audit yet")

// AuditConfig says what to compare with which node.
type AuditConfig struct {
	SocketPath string // the node's Unix socket; a Follower asks its own node if it is empty
	Magic      uint32 // refuse a directory of another network; 0 takes any
	Sample     int    // outputs of each kind; 0 for DefaultAuditSample
	Seed       uint64 // of the choice: the same seed and head give the same outputs

	// Progress, if set, is told how far the audit is, in order, from its own
	// goroutine. Total is 0 where it is not known.
	Progress func(phase AuditPhase, done, total int)

	Logger *slog.Logger // nil discards
}

// AuditPhase is what an audit is doing.
type AuditPhase string

// The phases in their order.
const (
	AuditReading   AuditPhase = "reading the set"         // done counts outputs
	AuditRecent    AuditPhase = "reading the last blocks" // done counts blocks
	AuditComparing AuditPhase = "comparing with the node" // done counts references
	auditSteps                = 1 << 14                   // outputs between two reports while reading
	auditPatience             = 30 * time.Second          // for a follower to come to the node's chain
	auditGlance               = 100 * time.Millisecond    // between looks at its head
	auditBatch                = chainsync.MaxRefs         // references compared between two reports
)

// AuditReport tells what was compared and where node and directory differ. Fields
// are only ever added.
type AuditReport struct {
	Point       chain.Point       `json:"point"` // at which both were looked at
	Height      int64             `json:"height"`
	Era         string            `json:"era"`     // of the node's ledger there
	Seed        uint64            `json:"seed"`    // of the choice
	Sampled     int               `json:"sampled"` // unspent outputs chosen from the whole set
	Recent      int               `json:"recent"`  // outputs chosen that were made or spent by the blocks that can be undone
	Blocks      int               `json:"blocks"`  // how many blocks those are
	Checked     int               `json:"checked"` // different outputs compared, of which
	Unspent     int               `json:"unspent"` // so many are unspent in the directory
	Spent       int               `json:"spent"`   // and so many are not
	Differences []AuditDifference `json:"differences"`
}

// AuditDifference is an output on which node and directory do not agree.
type AuditDifference struct {
	Ref    chain.TxIn `json:"output"`
	Kind   string     `json:"kind"`             // DiffMissing, DiffExtra, DiffContents or DiffUnreadable
	Fields []string   `json:"fields,omitempty"` // that differ: address, lovelace, assets, datum, script
	Ours   string     `json:"ours,omitempty"`   // canonical contents in the directory; empty if it is not unspent there
	Node   string     `json:"node,omitempty"`   // the same of the node
}

// The kinds of difference.
const (
	DiffMissing    = "missing"    // unspent for the node, not in the directory
	DiffExtra      = "extra"      // unspent in the directory, not for the node
	DiffContents   = "contents"   // unspent for both, and not the same
	DiffUnreadable = "unreadable" // one side's output cannot be decoded
)

// Audit compares a sample of the directory with the node's own ledger: unspent
// outputs from the whole set, and outputs that the newest blocks made or spent,
// taken from those blocks themselves. Both are looked at after the same block,
// the directory's head. Differences are in the report and no error.
//
// An error wraps a *chainsync.Error if the node cannot be asked: it is away, on
// another network, or has no ledger at our head because it is behind it or far
// ahead; ErrNothingToAudit; or follow.ErrDiverged if our head is not on its
// chain.
func (d *Dir) Audit(ctx context.Context, cfg AuditConfig) (AuditReport, error) {
	return d.audit(ctx, cfg, func(context.Context, chain.Point) bool { return false })
}

// Audit is Dir.Audit for a directory that is being followed into. Where the node
// has just switched to another fork it waits until the follower has too.
func (f *Follower) Audit(ctx context.Context, cfg AuditConfig) (AuditReport, error) {
	if cfg.SocketPath == "" {
		cfg.SocketPath = f.cfg.SocketPath
	}
	return f.audit(ctx, cfg, f.moved)
}

// moved waits until the head is another one than old; false if that takes too
// long.
func (f *Follower) moved(ctx context.Context, old chain.Point) bool {
	ctx, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	tick := time.NewTicker(auditGlance)
	defer tick.Stop()
	for f.store.Head().Point == old {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (d *Dir) audit(ctx context.Context, cfg AuditConfig, moved func(context.Context, chain.Point) bool) (AuditReport, error) {
	st := d.store.State()
	if cfg.Magic != 0 && cfg.Magic != st.Magic {
		return AuditReport{}, fmt.Errorf("%s: %w: its magic is %d, wanted is %d", d.path, store.ErrNetwork, st.Magic, cfg.Magic)
	}
	if cfg.Sample <= 0 {
		cfg.Sample = DefaultAuditSample
	}
	if cfg.Progress == nil {
		cfg.Progress = func(AuditPhase, int, int) {}
	}
	conn, err := chainsync.Dial(ctx, chainsync.Config{SocketPath: cfg.SocketPath, Magic: st.Magic, Logger: cfg.Logger})
	if err != nil {
		return AuditReport{}, err
	}
	defer conn.Close()
	for {
		head := d.store.Head().Point
		r, err := d.auditOnce(ctx, cfg, conn)
		if errors.Is(err, follow.ErrDiverged) && moved(ctx, head) {
			continue
		}
		return r, err
	}
}

// auditOnce audits at the present head.
func (d *Dir) auditOnce(ctx context.Context, cfg AuditConfig, conn *chainsync.Conn) (r AuditReport, err error) {
	snap := d.store.Snapshot()
	defer snap.Close()
	head := snap.Head()
	if head.Point.IsOrigin() {
		return r, fmt.Errorf("%s: %w: it holds no block", d.path, ErrNothingToAudit)
	}
	// Before the work of choosing: is there anything to compare with?
	node, err := d.acquire(ctx, conn, head)
	if err != nil {
		return r, err
	}
	era := node.Era()
	node.Release()
	if era == chain.Byron {
		return r, fmt.Errorf("%w: a node answers questions about outputs from Shelley on, and %s is in Byron", ErrNothingToAudit, head.At())
	}
	r = AuditReport{Point: head.Point, Height: int64(head.Height), Era: era.String(), Seed: cfg.Seed, Differences: []AuditDifference{}}
	refs, err := d.auditChoice(ctx, cfg, snap, &r)
	if err != nil {
		return r, err
	}
	// The state is not held while choosing, which takes long in a large set.
	if node, err = d.acquire(ctx, conn, head); err != nil {
		return r, err
	}
	defer node.Release()
	return r, compareWithNode(ctx, cfg, snap, node, refs, &r)
}

// acquire asks for the node's ledger at our head and, if that is refused, why.
func (d *Dir) acquire(ctx context.Context, conn *chainsync.Conn, head chain.Link) (*chainsync.LedgerState, error) {
	node, err := conn.Acquire(ctx, head.Point)
	if !errors.Is(err, chainsync.ErrPointTooOld) && !errors.Is(err, chainsync.ErrPointNotOnChain) {
		return node, err
	}
	_, ours, tip, terr := conn.Intersect(ctx, []chain.Point{head.Point})
	switch {
	case terr != nil:
		return nil, errors.Join(err, terr)
	case ours:
		return nil, fmt.Errorf("%w: its tip, at height %d, is more than k = %d blocks above our head, at height %d; follow it first", err, tip.Height, d.store.State().K, head.Height)
	case tip.Height < head.Height:
		return nil, fmt.Errorf("%w: it has come to height %d, our head is at height %d; wait until it has caught up", err, tip.Height, head.Height)
	}
	return nil, fmt.Errorf("%w: %w: our head, %s, is on a fork that the node has left, or never was on; follow it first", follow.ErrDiverged, err, head.At())
}

// compareWithNode asks for all references and notes the differences.
func compareWithNode(ctx context.Context, cfg AuditConfig, snap *store.Snapshot, node *chainsync.LedgerState, refs []chain.TxIn, r *AuditReport) error {
	for done := 0; done < len(refs); {
		cfg.Progress(AuditComparing, done, len(refs))
		batch := refs[done:min(done+auditBatch, len(refs))]
		theirs, err := node.UTxOByTxIn(ctx, batch)
		if err != nil {
			return err
		}
		for _, ref := range batch {
			ours, unspent, err := snap.Get(ref)
			if err != nil {
				return err
			}
			r.Checked++
			if unspent {
				r.Unspent++
			} else {
				r.Spent++
			}
			raw, found := theirs[ref]
			if diff, differs := compareOutput(ref, ours, unspent, raw, found, node.Era()); differs {
				r.Differences = append(r.Differences, diff)
			}
		}
		done += len(batch)
	}
	cfg.Progress(AuditComparing, len(refs), len(refs))
	return nil
}

// compareOutput compares what both sides know of an output. The node writes
// down what its ledger knows, not the bytes of the chain: contents are compared.
func compareOutput(ref chain.TxIn, ours chain.Output, unspent bool, raw []byte, found bool, era chain.Era) (diff AuditDifference, differs bool) {
	diff.Ref = ref
	var mine, theirs chain.TxOut
	var err error
	if unspent {
		if mine, err = ledger.DecodeOutput(ours.Era, ours.Raw); err != nil {
			diff.Kind, diff.Ours = DiffUnreadable, err.Error()
		} else {
			diff.Ours = contents(&mine)
		}
	}
	if found {
		if theirs, err = ledger.DecodeOutput(era, raw); err != nil {
			diff.Kind, diff.Node = DiffUnreadable, fmt.Sprintf("%v: %x", err, raw)
		} else {
			diff.Node = contents(&theirs)
		}
	}
	switch {
	case diff.Kind != "":
	case unspent && !found:
		diff.Kind = DiffExtra
	case found && !unspent:
		diff.Kind = DiffMissing
	case found:
		if diff.Fields = differing(&mine, &theirs, ours.Era); len(diff.Fields) > 0 {
			diff.Kind = DiffContents
		}
	}
	return diff, diff.Kind != ""
}
