//go:build unix

package disk

import "syscall"

// OpenFiles returns how many files the process may have open; false if that is not
// known.
func OpenFiles() (uint64, bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true //nolint:unconvert // other systems have other types
}
