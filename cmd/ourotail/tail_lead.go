package main

// leading is a tail that follows, whom other tails may share.
type leading struct{}

// leaderHeader says who leads, where it is no run.
const leaderHeader = "Ourotail-Leader"
