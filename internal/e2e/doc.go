// Package e2e drives the whole: a devnode on a real socket, a follower with a
// real store, readers that know nothing but their events, and the devnode's
// oracle to compare with.
package e2e
