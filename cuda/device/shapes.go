//go:build cuda

package device

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// must panics unless ok: a wrong shape is a bug of the caller.
func must(ok bool, says string) {
	if !ok {
		panic("device: " + says)
	}
}

// mustBe panics unless a matrix has this type and shape.
func mustBe(what string, m tensor.Matrix, t tensor.Type, rows, cols int) {
	if m.Rows != rows || m.Cols != cols || m.Type != t {
		panic(fmt.Sprintf("device: %s is %d x %d of %s and not %d x %d of %s", what, m.Rows, m.Cols, m.Type, rows, cols, t))
	}
}

// mustCompute panics unless a matrix is F32.
func mustCompute(m tensor.Matrix) { must(m.Type == tensor.F32, "what is computed is f32") }

// mustHold panics unless a matrix has this shape and a type that kernels convert.
func mustHold(what string, m tensor.Matrix, rows, cols int) {
	must(m.Type == tensor.F32 || m.Type == tensor.BF16, "a GPU converts f32 and bf16 only")
	mustBe(what, m, m.Type, rows, cols)
}

// mustFit checks an epilogue's shapes.
func mustFit(e *tensor.Epilogue, y tensor.Matrix) {
	if e == nil {
		return
	}
	if !e.Bias.None() {
		mustBe("the bias", e.Bias, tensor.F32, 1, y.Cols)
	}
	must(e.Dropout.P <= 0 || len(e.Dropout.Vertices) >= y.Rows, "a row is dropped from and has no vertex")
}
