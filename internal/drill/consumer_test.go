package drill

import (
	"errors"
	"testing"
	"time"
)

// TestAnswerWithoutEndIsCutOff: it is the consumer's fault, and nobody's memory.
func TestAnswerWithoutEndIsCutOff(t *testing.T) {
	c, err := startConsumer(t.Context(), []string{"sh", "-c", "yes addr_test1vq 1"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()
	select {
	case <-c.done:
	case <-time.After(30 * time.Second):
		t.Fatal("it still prints")
	}
	if n := c.answer.text.Len(); n > maxAnswer || n < maxAnswer/2 {
		t.Errorf("%d bytes were kept", n)
	}
	if err := c.early(); !errors.Is(err, errOver) {
		t.Error(err)
	}
	if _, err := c.finish(t.Context(), time.Second); !errors.Is(err, errOver) {
		t.Error(err)
	}
}
