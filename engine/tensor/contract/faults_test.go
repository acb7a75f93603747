package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// A recorder is a reporter that only remembers.
type recorder struct{ errors []string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// A fault is a device that is wrong in one thing.
type fault struct {
	check  string
	what   string
	device tensor.Device
}

// TestFaults plants each fault in a good device: the suite has to find it with the
// tolerance of F32, and has to have one for each of its checks.
func TestFaults(t *testing.T) {
	found := map[string]bool{}
	for _, f := range append(append(rowFaults(), edgeFaults()...), otherFaults()...) {
		found[f.check] = true
		t.Run(f.check+": "+f.what, func(t *testing.T) {
			for _, c := range checks {
				if c.name != f.check {
					continue
				}
				r := &recorder{}
				c.on(r, f.device, reference.New(), tolerance[tensor.F32])
				switch {
				case len(r.errors) == 0:
					t.Error("nobody noticed")
				case strings.Contains(r.errors[0], "panic:"):
					t.Errorf("the fault itself fails: %s", r.errors[0])
				default:
					t.Log(r.errors[0])
				}
			}
		})
	}
	for _, c := range checks {
		if !found[c.name] {
			t.Errorf("no fault says whether %s is checked", c.name)
		}
	}
}

// at is one element of a matrix of F64.
func at(m tensor.Matrix, i, j int) *float64 { return &m.F64()[i*m.Stride+j] }

// each calls f with all elements of a matrix.
func each(m tensor.Matrix, f func(i, j int, x *float64)) {
	for i := range m.Rows {
		for j := range m.Cols {
			f(i, j, at(m, i, j))
		}
	}
}

// clone is a copy that a fault may work on.
func clone(m tensor.Matrix) tensor.Matrix {
	a, _ := reference.New().NewArena(0)
	c := a.Alloc(m.Type, m.Rows, m.Cols)
	x := make([]float64, m.Rows*m.Cols)
	reference.New().Read(x, m)
	reference.New().Write(c, x)
	return c
}

// parts is an epilogue without some of what it does.
func parts(e *tensor.Epilogue, bias, activation, dropout bool) *tensor.Epilogue {
	if e == nil {
		return nil
	}
	p := tensor.Epilogue{}
	if bias {
		p.Bias = e.Bias
	}
	if activation {
		p.Activation = e.Activation
	}
	if dropout {
		p.Dropout = e.Dropout
	}
	return &p
}
