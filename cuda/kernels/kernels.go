// Package kernels holds what GPUs run, as the PTX that ships. The driver of the
// machine it runs on makes code of it, for compute capability 8.0 and all later.
//
// The sources lie beside it, a family a file; `make ptx` compiles them, with clang and
// without any CUDA toolkit. What they mean is tested on the processor, in
// cuda/emulator. A kernel's parameters are pointers and numbers of 4 or 8 bytes; what
// they are, and how it is launched, its file says.
package kernels

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.ptx
var files embed.FS

// A Module is one file of kernels. Kernels' names are unique over all modules.
type Module struct{ Name, PTX string }

// Modules are all there are, by name.
func Modules() []Module {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // what is embedded can be read
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
