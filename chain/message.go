package chain

// MessageKind tells what a node said.
type MessageKind uint8

// The kinds of chain-sync message.
const (
	RollForward  MessageKind = iota // here is the next block
	RollBackward                    // go back to a point; it names the point to keep
	AwaitReply                      // there is nothing more for now
)

// Message is what a node said about its chain, in order.
type Message struct {
	Kind  MessageKind
	Raw   []byte // of RollForward: the block in storage form, [era tag, block]
	Point Point  // of RollBackward
	Tip   Tip    // the node's tip when it said so; zero for AwaitReply
}

// Messages is a run of messages. The bytes of its blocks are valid until
// Release, which may be called once, from any goroutine, and may be nil.
type Messages struct {
	List    []Message
	Release func()
}
