package immutabledb

import "github.com/ourotail/ourotail/chain"

// tip is what messages name as the node's tip; the package comment argues why it
// is right. Its point is zero while only a height is known, and never that of a
// block in the folder: whoever stops at the tip does not stop at the end of the
// files, where nobody has said that there is nothing more.
type tip struct {
	now chain.Tip
	end chain.Height // of the files, when they were last looked at
	k   chain.Height
}

// newTip begins with the end of the files and what the node says; chain.Origin
// stands for nothing.
func newTip(end chain.Link, node chain.Tip, k chain.Height) tip {
	t := tip{end: end.Height, k: k, now: chain.Tip{Height: end.Height + k}}
	switch {
	case node.Height > end.Height:
		t.now = node
	case node.Height == end.Height:
		t.now.Height = node.Height
	}
	return t
}

// grew tells where the files end now: the node has moved blocks there since, so
// that k lie above them.
func (t *tip) grew(end chain.Link) {
	if end.Height <= t.end {
		return
	}
	t.end = end.Height
	if least := end.Height + t.k; least > t.now.Height {
		t.now = chain.Tip{Height: least}
	}
}
