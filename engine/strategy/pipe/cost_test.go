package pipe

import (
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What a number costs that follows an edge, in multiplications of a product of rows as wide:
// costs takes it to be 16, about what this measures where sources lie anywhere.
func BenchmarkEdgeInMultiplications(b *testing.B) {
	const vertices, degree, width = 20000, 16, 100
	d := cpu.New(0)
	defer d.Close()
	a, err := d.NewArena(0)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	x, y, w := a.Alloc(tensor.F32, vertices, width), a.Alloc(tensor.F32, vertices, width), a.Alloc(tensor.F32, width, width)
	d.Zero(x)
	d.Zero(w)
	g := &tensor.CSR{Rows: vertices, Cols: vertices, Indptr: []int64{0}}
	for v := range vertices {
		for i := range degree {
			g.Indices = append(g.Indices, int32((v*31+i*7919)%vertices))
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	var edges, products time.Duration
	for b.Loop() {
		begin := time.Now()
		d.Aggregate(y, g, tensor.Matrix{}, x, tensor.Sum, false, nil)
		edges += time.Since(begin)
		begin = time.Now()
		d.MatMul(y, x, w, tensor.NN, false, nil)
		products += time.Since(begin)
	}
	perEdge := float64(edges) / (vertices * degree * width)
	b.ReportMetric(perEdge/(float64(products)/(vertices*width*width)), "multiplications/number")
}
