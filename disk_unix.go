//go:build unix

package ourotail

import "golang.org/x/sys/unix"

// diskFree returns how many bytes an ordinary user may still write below a path.
func diskFree(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
