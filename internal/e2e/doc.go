// Package e2e drives the whole: a devnode on a real socket, a follower with a
// real store, readers that know nothing but their events, and the devnode's
// oracle to compare with.
//
// It also keeps the map of pitfalls: what has gone wrong in other followers, and
// which tests of this project fail if it does here (pitfalls_test.go). A test holds
// the map to what there is.
package e2e
