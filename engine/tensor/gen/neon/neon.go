// Package neon writes Go assembly for arm64, which avo does not, and the Go
// declarations beside it. Go's assembler lacks most vector instructions of floating
// point; those are written as words, with their mnemonics beside them.
package neon

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

// A File is what is written.
type File struct{ code, stubs strings.Builder }

// New starts the files.
func New() *File {
	f := &File{}
	f.code.WriteString("// The generator's name comes here.\n\n#include \"textflag.h\"\n")
	return f
}

// Write writes what the flags ask for, which are avo's: -out, -stubs and -pkg.
func (f *File) Write() {
	out := flag.String("out", "", "the assembly")
	stubs := flag.String("stubs", "", "the declarations")
	pkg := flag.String("pkg", "", "the package they are in")
	flag.Parse()
	head := "// The generator's name comes here.\n\npackage " + *pkg + "\n"
	for name, text := range map[string]string{*out: f.code.String(), *stubs: head + f.stubs.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatalf("writing what was generated: %v", err)
		}
	}
}

// Text starts a function without results. Its parameters have 8 bytes each; only
// the last may be a bool.
func (f *File) Text(name, params string) {
	all := strings.Split(params, ", ")
	bytes := 8 * len(all)
	if strings.HasSuffix(params, " bool") {
		bytes -= 7
	}
	fmt.Fprintf(&f.code, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, params, name, bytes)
	fmt.Fprintf(&f.stubs, "\n//go:noescape\nfunc %s(%s)\n", name, params)
	for i, p := range all {
		move := "MOVD"
		p, kind, _ := strings.Cut(p, " ")
		if kind == "bool" {
			move = "MOVBU"
		}
		f.Op("%s %s+%d(FP), R%d", move, p, 8*i, i)
	}
}

// Op writes an instruction.
func (f *File) Op(format string, args ...any) { fmt.Fprintf(&f.code, "\t"+format+"\n", args...) }

// Label writes a label.
func (f *File) Label(name string) { fmt.Fprintf(&f.code, "\n%s:\n", name) }

// word writes an instruction that Go's assembler lacks.
func (f *File) word(code int, format string, args ...any) {
	f.Op("WORD $%#08x // "+format, append([]any{code}, args...)...)
}

// Multiply adds n times a lane of m to d, rounded once.
func (f *File) Multiply(d, n, m, lane int) {
	f.word(0x4f801000|lane&1<<21|lane>>1<<11|m<<16|n<<5|d, "FMLA V%d.4S, V%d.4S, V%d.S[%d]", d, n, m, lane)
}

// Scale multiplies d with the first lane of m.
func (f *File) Scale(d, m int) {
	f.word(0x4f809000|m<<16|d<<5|d, "FMUL V%d.4S, V%d.4S, V%d.S[0]", d, d, m)
}

// Add adds m to d.
func (f *File) Add(d, m int) {
	f.word(0x4e20d400|m<<16|d<<5|d, "FADD V%d.4S, V%d.4S, V%d.4S", d, d, m)
}

// Widen makes the four BF16 in the lower half of n, or in the upper, numbers of d.
func (f *File) Widen(d, n int, upper bool) {
	if upper {
		f.word(0x6e613800|n<<5|d, "SHLL2 V%d.4S, V%d.8H, #16", d, n)
	} else {
		f.word(0x2e613800|n<<5|d, "SHLL V%d.4S, V%d.4H, #16", d, n)
	}
}

// Zero clears d.
func (f *File) Zero(d int) { f.Op("VEOR V%d.B16, V%d.B16, V%d.B16", d, d, d) }

// LoadFew loads the first n numbers at offset from a register, 1 to 4, and zeros.
func (f *File) LoadFew(v, n, offset, base, scratch int) {
	switch n {
	case 1:
		f.Op("FMOVS %d(R%d), F%d", offset, base, v)
	case 2, 3:
		f.Op("FMOVD %d(R%d), F%d", offset, base, v)
	case 4:
		f.Op("FMOVQ %d(R%d), F%d", offset, base, v)
	}
	if n == 3 {
		f.Op("ADD $%d, R%d, R%d", offset+8, base, scratch)
		f.Op("VLD1 (R%d), V%d.S[2]", scratch, v)
	}
}

// StoreFew stores the first n numbers, 1 to 4.
func (f *File) StoreFew(v, n, offset, base, scratch int) {
	switch n {
	case 1:
		f.Op("FMOVS F%d, %d(R%d)", v, offset, base)
	case 2, 3:
		f.Op("FMOVD F%d, %d(R%d)", v, offset, base)
	case 4:
		f.Op("FMOVQ F%d, %d(R%d)", v, offset, base)
	}
	if n == 3 {
		f.Op("ADD $%d, R%d, R%d", offset+8, base, scratch)
		f.Op("VST1 V%d.S[2], (R%d)", v, scratch)
	}
}
