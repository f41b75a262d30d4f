// Package canon writes the canonical text of outputs and of what blocks do to
// them, and adds up the digest of a set of unspent outputs. Two followers that
// agree print the same bytes: ASCII, fields apart by one space, hexadecimal
// digits in lower case, numbers in decimal. The lines appended here end
// without a newline.
package canon
