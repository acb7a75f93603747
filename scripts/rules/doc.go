// Package rules tests the rules of the source: which package may import which and why,
// the size of packages, files and types, which strings may occur where, and what tests
// must not do. It contains only tests. Rules for Go code in general are left to
// golangci-lint.
//
// Present violations are listed with their number and reason in testdata/exceptions.txt.
// The numbers may only fall, and must not stay more than a tenth above the actual ones:
// go test ./scripts/rules -update lowers them and removes lines that are no longer
// needed. With -update=add it also adds new or increased violations, whose reasons must
// then be written.
package rules
