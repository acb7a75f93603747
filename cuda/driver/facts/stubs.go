package main

import (
	"fmt"
	"slices"
	"strings"
)

// byHand lists the functions that shim.c defines.
var byHand = []string{"cuInit", "cuDeviceGetCount"}

// early lists the functions that work without a device and need only the library.
var early = []string{"cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"}

// stubs returns a definition of every function, which forwards the call to the library
// that shim.c has opened, and the names of the results.
func stubs() string {
	var b strings.Builder
	b.WriteString("//go:build cuda\n\n" + generated)
	b.WriteString("#include <cuda.h>\n\n#include \"shim.h\"\n\n")
	for _, f := range functions {
		if slices.Contains(byHand, f.symbol) {
			continue
		}
		with := "HOPMESH_FORWARD"
		if slices.Contains(early, f.symbol) {
			with = "HOPMESH_FORWARD_EARLY"
		}
		var declared, values []string
		for i, t := range f.types() {
			v := string(rune('a' + i))
			declared, values = append(declared, t+" "+v), append(values, v)
		}
		if declared == nil {
			declared = []string{"void"}
		}
		fmt.Fprintf(&b, "%s(%s, (%s), (%s))\n", with, f.symbol, strings.Join(declared, ", "), strings.Join(values, ", "))
	}
	b.WriteString("\nconst char *hopmesh_cuda_name(int code) {\n    switch (code) {\n")
	for _, v := range results.values {
		fmt.Fprintf(&b, "    case %s: return \"%s\";\n", v.name, v.name)
	}
	b.WriteString("    }\n    return NULL;\n}\n")
	return b.String()
}
