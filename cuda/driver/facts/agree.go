package main

import (
	"fmt"
	"strings"
)

// agreement returns a C program that prints sizes, offsets, values and the symbols behind
// names. It does not compile if a prototype differs from the table. It must print the
// same with our header and with NVIDIA's.
func agreement() string {
	var b strings.Builder
	b.WriteString("#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\n\n")
	b.WriteString("#define TEXT(x) #x\n#define SYMBOL(x) TEXT(x)\n\n")
	for _, f := range functions {
		parameters := f.parameters
		if parameters == "" {
			parameters = "void"
		}
		fmt.Fprintf(&b, "_Static_assert(__builtin_types_compatible_p(__typeof__(%s), CUresult(%s)), \"%s has other parameters\");\n", f.name(), parameters, f.symbol)
	}
	b.WriteString("\nint main(void) {\n")
	for _, f := range functions {
		fmt.Fprintf(&b, "    printf(\"%s is %%s\\n\", SYMBOL(%s));\n", f.name(), f.name())
	}
	size := func(name string) {
		fmt.Fprintf(&b, "    printf(\"sizeof %s is %%zu\\n\", sizeof(%s));\n", name, name)
	}
	for _, a := range aliases {
		size(a.name)
	}
	for _, h := range handles {
		size(h)
	}
	for _, s := range structures {
		size(s.name)
		for _, f := range s.fields {
			name, _, _ := strings.Cut(f.name, "[")
			fmt.Fprintf(&b, "    printf(\"%s.%s is at %%zu and takes %%zu\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", s.name, name, s.name, name, s.name, name)
		}
	}
	values := func(list []value) {
		for _, v := range list {
			fmt.Fprintf(&b, "    printf(\"%s is %%lld\\n\", (long long)%s);\n", v.name, v.name)
		}
	}
	for _, e := range enums {
		size(e.name)
		values(e.values)
	}
	values(constants)
	b.WriteString("    return 0;\n}\n")
	return b.String()
}
