package gemm

const (
	partDepth   = 1024    // minimum depth of a part
	partsMost   = 32      // maximum number of parts
	partsMemory = 8 << 20 // maximum size of all parts' sums, in numbers
	partBlock   = 192     // depth of a part that is added up in one pass
	stripeLeast = 112     // rows
	stripeMost  = 224     // rows
	stripesAll  = 16      // desired number of tasks, unless stripes would get too low
	sumWork     = 1 << 17 // additions in a chunk
)

// byParts computes transposed a times b. Both already have the kernels' format, and are
// only copied if they would thrash the cache. A long reduction is divided into parts,
// each with its own sums, which are added up in order. So the bits depend on the number
// of parts, which follows from the shape alone. A part is computed in stripes of rows.
func (g *Gemm) byParts() {
	size := g.rows * g.columns
	g.parts = max(min(g.depth/partDepth, partsMost, max(partsMemory/size, 4)), 1)
	g.part = (g.depth + g.parts - 1) / g.parts
	g.partials.grow((g.parts - 1) * size)

	stripe := min(max(g.rows*g.parts/stripesAll, stripeLeast), stripeMost)
	g.stripes = (g.rows + stripe - 1) / stripe
	g.chunk = g.kernels.whole((g.rows + g.stripes - 1) / g.stripes)
	g.stripes = (g.rows + g.chunk - 1) / g.chunk
	g.copied = aliased(g.a) || g.kernels.pairs != nil
	g.copiedB = aliased(g.b) || g.kernels.pairs != nil
	if g.copied || g.copiedB {
		g.aside.grow(g.pool.Size() * g.partCopies())
	}
	g.do(g.parts*g.stripes, (*partChunks)(g))

	if g.parts > 1 {
		g.chunk = max(sumWork/(g.columns*g.parts), 1)
		g.do((g.rows+g.chunk-1)/g.chunk, (*sumChunks)(g))
	}
}

// partCopies returns the scratch size that a worker needs for copies.
func (g *Gemm) partCopies() int { return partBlock * (spread(g.columns) + spread(g.chunk)) }

type partChunks Gemm

// Do computes a stripe of one part.
func (p *partChunks) Do(chunk, worker int) {
	g := (*Gemm)(p)
	part, row := chunk/g.stripes, chunk%g.stripes*g.chunk
	end := min((part+1)*g.part, g.depth)
	s := span{rows: min(g.chunk, g.rows-row), byColumns: true, c: at(g.c, row, 0), ldc: g.c.Stride}
	if part > 0 {
		s.c, s.ldc = offset(g.partials.base, ((part-1)*g.rows+row)*g.columns), g.columns
	}
	s.add = g.add && part == 0
	var aside *float32
	if g.copied || g.copiedB {
		aside = offset(g.aside.base, worker*g.partCopies())
	}
	for k := part * g.part; k < end; k += partBlock {
		depth := min(partBlock, end-k)
		s.depth = g.kernels.deep(depth)
		s.a, s.lda = at(g.a, k, row), g.a.Stride
		if g.copied {
			a := offset(aside, partBlock*spread(g.columns))
			g.copyAcross(a, spread(g.chunk), s.a, s.lda, depth, s.rows)
			s.a, s.lda = a, spread(g.chunk)
		}
		s.b, s.ldb = at(g.b, k, 0), g.b.Stride
		if g.copiedB {
			g.copyAcross(aside, spread(g.columns), s.b, s.ldb, depth, g.columns)
			s.b, s.ldb = aside, spread(g.columns)
		}
		g.multiply(&s)
		s.add = true
	}
	if g.parts == 1 {
		g.finishRows(row, s.rows)
	}
}

type sumChunks Gemm

// Do adds up the parts of some rows.
func (p *sumChunks) Do(chunk, _ int) {
	g := (*Gemm)(p)
	first := chunk * g.chunk
	n := min(g.chunk, g.rows-first)
	for row := first; row < first+n; row++ {
		for part := range g.parts - 1 {
			g.kernels.add(at(g.c, row, 0), offset(g.partials.base, (part*g.rows+row)*g.columns), g.columns)
		}
	}
	g.finishRows(first, n)
}
