// Package query says which outputs, transactions and blocks somebody wants:
// the algebra of contract 4.2 and 4.3, its text (Kupo's patterns joined by
// and, or, not and parentheses) and its JSON form, matching, what coverage
// answers a query (contract 1.3), and the keys under which it can be found.
//
// Queries are immutable values, safe for concurrent use. They keep the byte
// slices and strings they are made from.
package query
