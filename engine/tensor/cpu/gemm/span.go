package gemm

const (
	columnBlock = 512     // columns swept in one pass
	sweepWork   = 3 << 20 // multiplications per kernel call, which can't be preempted
)

// A span is a product of some rows and part of the depth, with all columns.
type span struct {
	a, b, c     *float32
	lda, ldc    int
	ldb         int // 0: b is packed
	rows, depth int
	byColumns   bool
	add         bool
}

// A run is adjacent panels of one width, as a sweep needs them.
type run struct {
	b, c                     *float32
	ldb, nextB, panels, last int
}

// multiply sweeps over a span. Each strip has its own blocks of rows.
func (g *Gemm) multiply(s *span) {
	packed := 0 // start of the next panel, if b is packed
	for _, strip := range g.strips[:g.cuts] {
		w := &g.kernels.widths[strip.width]
		most := max(columnBlock/w.columns, 1) * w.columns
		for done := 0; done < strip.columns; done += most {
			n := min(most, strip.columns-done)
			column := strip.first + done
			r := run{c: offset(s.c, column), panels: (n + w.columns - 1) / w.columns}
			r.last = n - (r.panels-1)*w.columns
			if s.ldb > 0 {
				r.b, r.ldb, r.nextB = offset(s.b, column), s.ldb, w.columns
			} else {
				r.b, r.ldb, r.nextB = offset(s.b, packed), w.columns, w.columns*s.depth
				packed += r.panels * r.nextB
			}
			g.sweep(s, w, &r)
		}
	}
}

// sweep sweeps over all rows of a span, using the highest blocks for most of them.
func (g *Gemm) sweep(s *span, w *width, r *run) {
	row := s.lda
	if s.byColumns {
		row = 1
	}
	done := 0
	for i := range w.kernels {
		k := &w.kernels[i]
		sweep := k.byRows
		if s.byColumns {
			sweep = k.byColumns
		}
		left := s.rows - done
		whole := left / k.rows
		if i == 0 && whole > 0 && left%k.rows == 2 && k.rows+2 == 2*w.kernels[1].rows {
			// Two rows alone would take as long as eight: their sums are latency-bound.
			whole--
		}
		most := max(sweepWork/(k.rows*r.panels*w.columns*s.depth), 1)
		for whole > 0 {
			blocks := min(whole, most)
			sweep(offset(s.a, done*row), s.lda, r.b, r.ldb, r.nextB, offset(r.c, done*s.ldc), s.ldc, s.depth, blocks, r.panels, r.last, s.add)
			done += blocks * k.rows
			whole -= blocks
		}
	}
}
