// Package golden pins what training computes: a table under testdata holds a hash of the
// weights after each epoch, for every strategy and model, and its test trains them all
// again on one, two and five nodes. A change that is meant to leave the arithmetic alone
// leaves the table alone. The package has no code beside the test.
package golden
