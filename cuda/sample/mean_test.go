//go:build cuda && emulator

package sample

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/sample"
)

// The outermost hop, drawn where it is summed up, is what its block would give; the
// blocks before it are the same with it and without.
func TestMeanIsThatOfTheBlock(t *testing.T) {
	d := opened(t)
	const vertices, cols = 300, 37
	whole := topology(t, cut(wild(vertices, 3000, 5), true, 120, vertices))
	for i, form := range forms() {
		for _, fanouts := range [][]int{{5}, {3, 15}, {4, 0}} {
			o := sample.Options{Fanouts: fanouts, Form: form, Seed: uint64(i)}
			want, mean := &sample.Batch{}, form.Weighting == sample.Ones
			if err := sample.New(whole, o).Sample(t.Context(), want, 1, 2, every(vertices, 11)); err != nil {
				t.Fatal(err)
			}
			err := d.Do(func(on *driver.Thread) error { return meanAgrees(on, whole, o, want, vertices, cols, mean) })
			if err != nil {
				t.Errorf("%+v, fan-outs %v: %v", form, fanouts, err)
			}
		}
	}
}

func meanAgrees(on *driver.Thread, whole *sample.Topology, o sample.Options, want *sample.Batch, vertices, cols int, mean bool) error {
	s, err := New(on, whole, Options{Options: o, Fused: true})
	if err != nil {
		return err
	}
	b := &Batch{}
	if err := s.Sample(on, b, 1, 2, every(vertices, 11)); err != nil {
		return err
	}
	outer := want.Blocks[0]
	if err := differ(on, b, &sample.Batch{Blocks: want.Blocks[1:]}); err != nil {
		return err
	}
	if b.Inputs != outer.Rows || b.Summed != outer.Entries() {
		return fmt.Errorf("%d inputs and %d entries, want %d and %d", b.Inputs, b.Summed, outer.Rows, outer.Entries())
	}
	p, err := on.AllocPinned(4 * vertices * cols)
	x, err1 := on.Alloc(p.Len())
	y, err2 := on.Alloc(4 * outer.Rows * cols)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	at := func(v, c int) float32 { return float32((v*31+c*17)%101) / 7 }
	for i := range vertices * cols {
		driver.Numbers[float32](p)[i] = at(i/cols, i%cols)
	}
	to, from := Rows{At: y, Stride: cols, Cols: cols}, Rows{At: x, Stride: cols, Cols: cols}
	if err := s.Mean(on, b, Rows{At: y, Stride: cols, Cols: cols + 1}, from, mean); !errors.Is(err, errRows) {
		return fmt.Errorf("too many columns: %w", err)
	}
	result := p.Slice(0, y.Len())
	err = errors.Join(on.SendNow(x, p), s.Mean(on, b, to, from, mean), on.Fetch(result, y, s.Stream()), on.Finish(s.Stream()))
	if err != nil {
		return err
	}
	for r := range outer.Rows {
		first, end := outer.Indptr[r], outer.Indptr[r+1]
		for c := range cols {
			sum := 0.0
			for e := first; e < end; e++ {
				value := float64(1)
				if outer.Values != nil {
					value = float64(outer.Values[e])
				}
				sum += value * float64(at(int(outer.Vertices[outer.Indices[e]]), c))
			}
			if mean && end > first {
				sum /= float64(end - first)
			}
			if got := float64(driver.Numbers[float32](result)[r*cols+c]); math.Abs(got-sum) > 1e-5*(1+math.Abs(sum)) {
				return fmt.Errorf("row %d, column %d is %v, want %v", r, c, got, sum)
			}
		}
	}
	return errors.Join(on.Free(x), on.Free(y), on.FreePinned(p), b.Close(on), s.Close(on))
}
