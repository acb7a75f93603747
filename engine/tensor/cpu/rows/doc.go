// Package rows implements the kernels that see one row at a time: epilogues, sums,
// normalisation, losses, updates, conversions.
package rows
