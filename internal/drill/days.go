package drill

import "slices"

// Days returns every day, in the order in which they are best met.
func Days() []Day {
	return slices.Concat(plainDays(), forkDays(), restartDays(), nodeDays())
}
