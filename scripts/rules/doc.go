// Package rules holds the rules of the house as tests: which package may import
// which and why, how files and packages are kept, what tests may not do. It has
// no code beside them. What holds for any Go code is golangci-lint's.
package rules
