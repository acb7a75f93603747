package contract

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// gathers tests Gather from one part or several, some of them of another type and some
// without rows.
func gathers(b *bench) {
	types := []tensor.Type{b.native(), tensor.F32, tensor.BF16}
	gather := func(rows, cols, parts int, to tensor.Type, from func(part int) tensor.Type) {
		b.try(fmt.Sprintf("Gather of %d rows of %d from %d parts to %s", rows, cols, parts, to), func() {
			xs, firsts, ids := make([]*operand, parts), make([]uint32, parts), []uint32(nil)
			first := uint32(b.below(2) * (1<<31 - 40))
			for p := range parts {
				n := b.full()
				if p > 0 && b.below(5) == 0 {
					n = 0
				}
				xs[p] = b.in(fmt.Sprint("part ", p), from(p), n, cols, b.numbers(n*cols))
				firsts[p] = first
				for i := range n {
					ids = append(ids, first+uint32(i))
				}
				first += uint32(n + b.below(2)*b.below(100))
			}
			some := make([]uint32, rows)
			for i := range some {
				some[i] = ids[b.below(len(ids))]
				switch i {
				case 0:
					some[i] = ids[0]
				case 1:
					some[i] = ids[len(ids)-1]
				}
			}
			y := b.out("y", to, rows, cols)
			y.exact = true
			b.both(func(s side) {
				ps := make([]tensor.Part, parts)
				for p := range ps {
					ps[p] = tensor.Part{First: firsts[p], X: s.of(xs[p])}
				}
				s.Gather(s.of(y), ps, some)
			})
		})
	}
	b.shaped(60, func(rows, cols int) {
		from := types[b.below(len(types))]
		gather(rows, cols, 1+b.below(2)*b.below(6), types[b.below(len(types))], func(int) tensor.Type { return from })
	})
	b.shaped(10, func(rows, cols int) {
		gather(rows, cols, 5, b.native(), func(p int) tensor.Type { return types[p%len(types)] })
	})
}
