package ptx

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const sample = `//
// A comment with .entry in it
.version 8.0
.target sm_80 /* .entry neither here ( */
.address_size 64
.file 1 ".entry text("

.extern .shared .align 16 .b8 dynamic[];

.visible .entry scale(
	.param .u64 .ptr .global .align 16 scale_param_0,
	.param .u32 scale_param_1,
	.param .f32 scale_param_2,
	.param .align 8 .b8 scale_param_3[24]
)
.maxntid 256, 1, 1
{
	.reg .b32 %r<4>;
	ret;
}
.func (.param .b32 out) helper(.param .b64 in) { ret; }
.entry bare
{ ret; }
.weak .entry _Z5emptyv() { ret; }
.entry $small ( .param .s8 a , .param .f64 b ) { ret; }
`

func TestKernels(t *testing.T) {
	got, err := Kernels(sample)
	want := map[string][]int{"scale": {8, 4, 4, 24}, "bare": nil, "_Z5emptyv": {}, "$small": {1, 8}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestWrongText(t *testing.T) {
	for text, says := range map[string]string{
		"":                                    "no .version",
		"\x7fELF":                             "no .version",
		".version 8.0\x00.entry a()":          "zero byte",
		".version 8.0\n.entry ":               "line 2: an .entry without a name",
		".version 8.0\n.entry 1a()":           "without a name",
		".version 8.0 .entry a() .entry a()":  "second .entry a",
		".version 8.0 .entry a(":              `kernel a: this is no PTX: line 1: a list of parameters with "" in it`,
		".version 8.0 .entry a(.param":        "without type or name",
		".version 8.0 .entry a(.param .u32 x": "without an end",
		".version 8.0 .entry a(.param .u32 x .param .u32 y)": "without an end",
		".version 8.0 .entry a(.param .u32 x,)":              `with ")" in it`,
		".version 8.0 .entry a(.param x)":                    "without type or name",
		".version 8.0 .entry a(.param .b8 x[])":              "without a length",
		".version 8.0 .entry a(.param .b8 x[99999999999])":   "without a length",
		".version 8.0 .entry a(.param .b8 x[4)":              "without a length",
	} {
		got, err := Kernels(text)
		if !errors.Is(err, ErrText) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(sample)
	f.Add(".version 8.0 .entry a(.param .b8 x[4)")
	f.Add(`.version "/*`)
	f.Fuzz(func(t *testing.T, text string) {
		kernels, err := Kernels(text)
		if err != nil && !errors.Is(err, ErrText) {
			t.Fatal(err)
		}
		for name, list := range kernels {
			if !identifier(name) || !strings.Contains(text, name) {
				t.Errorf("a kernel %q", name)
			}
			for _, n := range list {
				if n < 0 || n > 8<<16 {
					t.Errorf("%s: a parameter of %d bytes", name, n)
				}
			}
		}
	})
}
