// Package record writes events for people and programs: the JSON record and
// its envelope, one line each. The shapes are held by golden files; fields are
// only ever added.
package record
