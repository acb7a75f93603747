// Package kernels embeds the GPU kernels as PTX. The driver compiles them for the actual
// GPU, which must have compute capability 8.0 or later.
//
// The sources are in the same folder, one file per family. `make ptx` compiles them with
// clang, without any CUDA toolkit. cuda/emulator tests them on the CPU. The parameters of
// kernels are pointers and numbers of 4 or 8 bytes. Each file documents them, and how its
// kernels are launched.
package kernels

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.ptx
var files embed.FS

// Module is one file of kernels. Kernels' names are unique over all modules.
type Module struct{ Name, PTX string }

// Modules returns all modules, by name.
func Modules() []Module {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded files can always be read
	}
	var all []Module
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		all = append(all, Module{strings.TrimSuffix(e.Name(), path.Ext(e.Name())), string(text)})
	}
	return all
}
