package foreign_test

import (
	"errors"
	"testing"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/contract"
	"github.com/hopmesh/hopmesh/engine/tensor/foreign"
)

func TestLanes(t *testing.T) {
	d := foreign.New(1)
	defer d.Close()
	contract.Lanes(t, d)
}

// After the operation that fails, nothing is done.
func TestFails(t *testing.T) {
	d, broken := foreign.New(1), errors.New("it fell off the bus")
	defer d.Close()
	a, err := d.NewArena(0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m, x := a.Alloc(tensor.F32, 1, 1), make([]float32, 1)
	d.Write32(m, []float32{1})
	d.FailAt(2, broken)
	d.Write32(m, []float32{2})
	if d.Err() != nil {
		t.Errorf("it has failed: %v", d.Err())
	}
	d.Write32(m, []float32{3})
	d.Read32(x, m)
	if !errors.Is(d.Err(), broken) || x[0] != 0 {
		t.Errorf("got %v, and read %v", d.Err(), x)
	}
}

// What would go wrong on a device with a memory of its own is a panic here.
func TestWhatIsTheHosts(t *testing.T) {
	for name, use := range map[string]func(d *foreign.Device, m tensor.Matrix){
		"a matrix": func(d *foreign.Device, m tensor.Matrix) {
			d.Combine(m, 1, tensor.OverF32(1, 4, make([]float32, 4)), 0, tensor.Matrix{})
		},
		"a CSR changed under its stamp": func(d *foreign.Device, m tensor.Matrix) {
			g := &tensor.CSR{Rows: 1, Cols: 4, Indptr: []int64{0, 1}, Indices: []int32{2}, Stamp: tensor.NewStamp()}
			d.Densify(m, g)
			g.Indices[0] = 3
			d.Densify(m, g)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := foreign.New(1)
			defer d.Close()
			a, err := d.NewArena(0)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			defer func() {
				if recover() == nil {
					t.Error("nothing was said")
				}
			}()
			use(d, a.Alloc(tensor.F32, 1, 4))
		})
	}
}

// An arena is refused beyond what there is, and what is closed can be had again.
func TestLimit(t *testing.T) {
	const most = 8 << 20
	d := foreign.New(1)
	defer d.Close()
	d.Limit(most)
	a, err := d.NewArena(most)
	if free, total := d.Free(); err != nil || free != 0 || total != most {
		t.Fatalf("%d of %d are free: %v", free, total, err)
	}
	if _, err := d.NewArena(1); !errors.Is(err, foreign.ErrFull) {
		t.Errorf("got %v", err)
	}
	a.Close()
	if free, _ := d.Free(); free != most {
		t.Errorf("%d are free", free)
	}
}
