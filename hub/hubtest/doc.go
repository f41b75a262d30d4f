// Package hubtest holds the conformance suite for providers, the contract's
// section 5.5, and two providers to run it with: an emulator that applies a
// transaction at a time and has no raw block, and a metered one that probes
// only what it is asked for.
//
// A provider runs the suite with a fixture that makes its chain move:
//
//	hubtest.Run(t, func(t *testing.T) hubtest.Fixture { … })
//
// It is held to what its own capabilities declare, no more.
package hubtest
