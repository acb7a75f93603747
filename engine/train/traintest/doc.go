// Package traintest has what the tests of training share: nodes of one process, small
// graphs and recipes, and comparisons of what they learn.
package traintest
