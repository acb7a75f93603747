// Package gen is empty. Beside it lie the programs that write the assembly of
// engine/tensor/cpu, one file each; README.md says how they are run.
package gen

// The programs are not part of any build, so this is what keeps their one
// dependency in go.mod.
import _ "github.com/mmcloughlin/avo/build"
