package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync flushes a file's contents, those written through mappings included, and
// what is needed to find them, but not its times.
func Sync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
