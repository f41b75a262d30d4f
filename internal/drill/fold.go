package drill

// mistake is a way in which consumers go wrong. A wrong answer that one of them
// explains is reported with its description.
type mistake struct {
	name     string
	describe string

	noUndo         bool // undo lines are passed over
	noRevive       bool // an undone spend stays spent
	noRemove       bool // an undone creation stays
	exactPoint     bool // an undo to a block without a record of its own is passed over
	inclusive      bool // the block that undo names is undone too
	noOrigin       bool // an undo without a point is passed over
	skipInvalid    bool // what a transaction with failed scripts did is passed over
	noSeed         bool // genesis outputs are passed over
	noSpends       bool // spends are passed over
	onceID         bool // an id seen before is passed over, undone or not
	onceOutput     bool // an output seen before is passed over, undone or not
	skipNoTx       bool // what the ledger itself removes stays
	oneUndoAtATime bool // an undo right behind another is passed over
}

var mistakes = []mistake{
	{name: "undo", describe: "ignores undo", noUndo: true},
	{name: "revive", describe: "on undo forgets the outputs created above the point but does not bring back the outputs spent above it", noRevive: true},
	{name: "remove", describe: "on undo brings back the outputs spent above the point but does not forget the outputs created above it", noRemove: true},
	{name: "exact", describe: "acts on undo only if it has had a record of the very block that the undo names", exactPoint: true},
	{name: "inclusive", describe: "on undo also undoes the block that the undo names", inclusive: true},
	{name: "origin", describe: "does nothing on an undo without a point, which goes back to origin", noOrigin: true},
	{name: "twice", describe: "ignores an undo that comes right behind another", oneUndoAtATime: true},
	{name: "invalid", describe: `passes over records with "tx_valid": false`, skipInvalid: true},
	{name: "seed", describe: `passes over "seed" lines, the genesis outputs`, noSeed: true},
	{name: "spends", describe: "does not take away what is spent", noSpends: true},
	{name: "id", describe: "passes over events whose id it has had before, though they were undone meanwhile", onceID: true},
	{name: "output", describe: "passes over outputs that it has had before, though they were undone meanwhile", onceOutput: true},
	{name: "ledger", describe: "does not take away what the ledger itself removes (spent by the all-zero transaction)", skipNoTx: true},
}

// held is an output as a consumer knows it.
type held struct {
	address  string
	lovelace int64
	created  int64
	spent    int64 // unspent if it is notSpent
}

const notSpent = -2

// zeroTx is the transaction that stands for the ledger itself.
const zeroTx = "0000000000000000000000000000000000000000000000000000000000000000"

// fold returns the balances that the events come to: by the rules if m is the
// zero mistake. Addresses without a balance are left out.
func fold(events []event, m mistake) map[string]int64 {
	sums := map[string]int64{}
	for _, o := range foldOutputs(events, m) {
		if o.spent == notSpent && o.lovelace > 0 {
			sums[o.address] += o.lovelace
		}
	}
	return sums
}

// foldOutputs returns the outputs that the events come to, by reference.
func foldOutputs(events []event, m mistake) map[string]*held {
	set := map[string]*held{}
	ids, outputs, points := map[string]bool{}, map[string]bool{}, map[string]bool{}
	undone := false
	for i := range events {
		e := &events[i]
		if e.undo {
			skip := m.noUndo || m.exactPoint && !points[e.point] || m.noOrigin && e.slot == noSlot || m.oneUndoAtATime && undone
			undone = true
			if !skip {
				undo(set, e.slot, m)
			}
			continue
		}
		undone = false
		points[e.point] = true
		if m.noSeed && e.seed || m.skipInvalid && e.invalid || m.onceID && ids[e.id] {
			continue
		}
		ids[e.id] = true
		o := set[e.ref]
		switch {
		case !e.spent:
			if m.onceOutput && outputs[e.ref] {
				continue
			}
			outputs[e.ref] = true
			set[e.ref] = &held{e.address, e.lovelace, e.slot, notSpent}
		case o == nil || m.noSpends || m.skipNoTx && e.tx == zeroTx:
		default:
			o.spent = e.slot
		}
	}
	return set
}

// undo discards what happened above a slot. Slots tell blocks apart here: on one
// chain no two blocks with records share one.
func undo(set map[string]*held, to int64, m mistake) {
	if m.inclusive {
		to--
	}
	for ref, o := range set {
		if o.created > to && o.created != noSlot && !m.noRemove {
			delete(set, ref)
		} else if o.spent > to && !m.noRevive {
			o.spent = notSpent
		}
	}
}

// foldSums is fold for a consumer that keeps no outputs, but adds to and takes
// away from balances, and on undo reverses what it did. Made without a mistake
// it comes to the same.
func foldSums(events []event, m mistake) map[string]int64 {
	return foldBy(events, m, func(e *event) string { return e.address })
}

// foldBy is foldSums with sums by something else than the address.
func foldBy(events []event, m mistake, key func(*event) string) map[string]int64 {
	type change struct {
		slot   int64
		of     string
		amount int64
	}
	sums := map[string]int64{}
	var changes []change
	ids, outputs, points := map[string]bool{}, map[string]bool{}, map[string]bool{}
	undone := false
	for i := range events {
		e := &events[i]
		if e.undo {
			to := e.slot
			if m.inclusive {
				to--
			}
			skip := m.noUndo || m.exactPoint && !points[e.point] || m.noOrigin && e.slot == noSlot || m.oneUndoAtATime && undone
			undone = true
			for n := len(changes) - 1; !skip && n >= 0 && changes[n].slot > to && changes[n].slot != noSlot; n-- {
				if c := changes[n]; c.amount < 0 && !m.noRevive || c.amount > 0 && !m.noRemove {
					sums[c.of] -= c.amount
				}
				changes = changes[:n]
			}
			continue
		}
		undone = false
		points[e.point] = true
		if m.noSeed && e.seed || m.skipInvalid && e.invalid || m.onceID && ids[e.id] ||
			e.spent && (m.noSpends || m.skipNoTx && e.tx == zeroTx) || !e.spent && m.onceOutput && outputs[e.ref] {
			continue
		}
		ids[e.id], outputs[e.ref] = true, true
		amount := e.lovelace
		if e.spent {
			amount = -amount
		}
		sums[key(e)] += amount
		changes = append(changes, change{e.slot, key(e), amount})
	}
	for a, n := range sums {
		if n == 0 {
			delete(sums, a)
		}
	}
	return sums
}

// diagnose returns the mistake of a consumer that answers so, nil if no known
// one does, and what it makes of single outputs.
func diagnose(events []event, answer map[string]int64) (m *mistake, outputs map[string]int64) {
	byOutput := func(e *event) string { return e.ref }
	for i, m := range mistakes {
		if same(foldSums(events, m), answer) {
			return &mistakes[i], foldBy(events, m, byOutput)
		}
		if same(fold(events, m), answer) {
			outputs := map[string]int64{}
			for ref, o := range foldOutputs(events, m) {
				if o.spent == notSpent && o.lovelace > 0 {
					outputs[ref] = o.lovelace
				}
			}
			return &mistakes[i], outputs
		}
	}
	return nil, nil
}

// culprits returns the outputs of an address that a consumer gets wrong.
func culprits(events []event, outputs map[string]int64, address string) map[string]bool {
	refs := map[string]bool{}
	if outputs == nil {
		return refs
	}
	right := foldBy(events, mistake{}, func(e *event) string { return e.ref })
	for i := range events {
		if e := &events[i]; e.address == address && right[e.ref] != outputs[e.ref] {
			refs[e.ref] = true
		}
	}
	return refs
}

func same(a, b map[string]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}
