package tensor

import "github.com/hopmesh/hopmesh/engine/keyed"

// An Arena hands out memory of a device until it is reset, and then the same
// memory again. What it hands out holds anything at all. It grows when it must,
// which costs; in steady state nothing is allocated. One goroutine uses it.
type Arena interface {
	Alloc(t Type, rows, cols int) Matrix // 64-byte aligned, without gaps between rows
	Reset()
	Bytes() int // held
	Close()
}

// A Device computes. One goroutine at a time uses it; it may use many threads
// itself. Results do not depend on how many.
//
// Matrices passed together have the shapes that the operation says; a wrong shape
// is a fault of the program and panics. Unless said otherwise an output overlaps
// no input, `add` says that the result is added to what the output holds, and any
// stride is allowed. A zero Matrix stands for an argument that is left out.
// Empty matrices are fine everywhere.
type Device interface {
	Name() string // "cpu (AVX-512, 2 threads)"
	Type() Type   // of what it computes with: F32, or F64 on the reference device
	Close()

	// NewArena makes an arena that holds this many bytes at once and grows
	// beyond. What it takes is touched now and not during a step.
	NewArena(bytes int) (Arena, error)

	// Write fills m with numbers in row order, Read is the reverse. They convert.
	Write(m Matrix, from []float64)
	Read(to []float64, m Matrix)
	// Write32 and Read32 are as Write and Read.
	Write32(m Matrix, from []float32)
	Read32(to []float32, m Matrix)

	Products
	Rows
	Aggregations
	Attentions
	Learning
}

// Activation is a function of one element.
type Activation uint8

// The activations. ELU has a scale of 1.
const (
	Linear Activation = iota
	ReLU
	ELU
)

// Dropout drops elements with a probability and scales the others up. What is
// dropped depends on the key, the row's vertex and the column, on nothing else:
// an element is dropped if Key.With(vertex).Column(column) < Threshold(P), and
// else multiplied by 1/(1-P).
type Dropout struct {
	P        float32 // 0: nothing is dropped
	Key      keyed.Key
	Vertices []uint32 // of the rows
}

// An Epilogue is what happens to a result as it is stored, in this order: bias,
// activation, dropout. The zero Epilogue does nothing.
type Epilogue struct {
	Bias       Matrix // 1 x Cols, or none
	Activation Activation
	Dropout    Dropout
}

// Shape says how the operands of a product lie.
type Shape uint8

// NN is a*b, TN is transposed a times b, NT is a times transposed b.
const (
	NN Shape = iota
	TN
	NT
)

// Products are those of dense matrices.
type Products interface {
	// MatMul is c = a*b in the shape given, then e (nil: nothing). With add, c
	// is added to before e.
	MatMul(c, a, b Matrix, shape Shape, add bool, e *Epilogue)
}

// Rows are operations that see each row, or each element, by itself.
type Rows interface {
	Zero(m Matrix)
	// Combine is y = alpha*a + beta*b; b may be left out. y may be a or b. The
	// types may differ between a, b and y as far as they are numbers, which
	// makes it the copy that converts, too.
	Combine(y Matrix, alpha float64, a Matrix, beta float64, b Matrix)
	// Apply is y = e(x). y may be x.
	Apply(y, x Matrix, e *Epilogue)
	// ApplyBack is the gradient of e: dx from dy and y, which is what e stored.
	// With bias, the columns' sums of dx are added to dbias (1 x Cols) if that is
	// not left out. dx may be dy. Where e drops, e is given as it was.
	ApplyBack(dx, dbias, dy, y Matrix, e *Epilogue)
	// Gather is y[i] = the row of vertex ids[i]; the part whose rows hold it is
	// the last whose First is not above it. Types may differ, as for Combine.
	Gather(y Matrix, parts []Part, ids []uint32)
	// ScatterAdd is y[rows[i]] += x[i]; a row may occur more than once, and is
	// then added to in the order of i.
	ScatterAdd(y, x Matrix, rows []int32)
	// ScaleRows is y[i] = scale[i] * x[i]; scale is Rows x 1. y may be x.
	ScaleRows(y, x, scale Matrix)
	// LayerNorm is y = e((x-mean)/sqrt(variance+1e-5)*gamma + beta) of each row;
	// e has no bias. stats (Rows x 2) keeps mean and 1/deviation for backward.
	LayerNorm(y, stats, x, gamma, beta Matrix, e *Epilogue)
	// LayerNormBack takes the gradient at LayerNorm's output before e. It adds
	// to dgamma and dbeta (1 x Cols). dx may be dy.
	LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma Matrix)
	// Max keeps the larger element and which it was: where x > y, or first, y =
	// x and which = index. which is I32.
	Max(y, which, x Matrix, index int, first bool)
	// MaxBack is dx = dy where which is index, else 0.
	MaxBack(dx, dy, which Matrix, index int)
	// ColumnSums adds the sums of x's columns to sums (1 x Cols).
	ColumnSums(sums, x Matrix)
	// Densify writes the rows of g as a dense matrix.
	Densify(y Matrix, g *CSR)
	// DropValues is to[i] = from[i], dropped or scaled up, for the entries of g,
	// whose values from and to are (1 x Entries; from left out: those of g): the
	// vertex is that of the row, the column that of the entry.
	DropValues(to, from Matrix, g *CSR, d Dropout)
	// Finite says whether all elements are finite.
	Finite(m Matrix) bool
}

// A Part is the rows of consecutive vertices.
type Part struct {
	First uint32 // the vertex of row 0
	X     Matrix
}

// Aggregation is how the rows of the sources become the row of their target.
type Aggregation uint8

// Sum adds, weighted by the values of the CSR; Mean divides that by the number of
// entries, and is 0 where there are none.
const (
	Sum Aggregation = iota
	Mean
)

// Aggregations go along the edges.
type Aggregations interface {
	// Aggregate is y = e(the sources' rows of x, aggregated); y has g.Rows rows,
	// x g.Cols. x may be BF16. values, if not left out, are 1 x Entries and stand
	// in for g.Values. With add, y is added to before e.
	Aggregate(y Matrix, g *CSR, values, x Matrix, how Aggregation, add bool, e *Epilogue)
	// AggregateBack is the gradient with respect to x: dx[source] = the sum over
	// its targets. g has its Transposed.
	AggregateBack(dx Matrix, g *CSR, values, dy Matrix, how Aggregation, add bool)
	// AggregateMax is the largest of each column; which (I32) is the source's row
	// in x it came from, the first entry of equal ones, -1 where there are no entries,
	// whose rows of y are 0.
	AggregateMax(y, which Matrix, g *CSR, x Matrix)
	// AggregateMaxBack is its gradient, with add as in AggregateBack.
	AggregateMaxBack(dx Matrix, g *CSR, dy, which Matrix, add bool)
}

// Attentions are what graph attention does along the edges. With H heads of D
// columns, x has H*D columns, head after head.
type Attentions interface {
	// HeadDot is y[i,h] = the product of x[i] and a (1 x H*D) over the columns of
	// head h; y is Rows x H.
	HeadDot(y, x, a Matrix)
	// HeadDotBack adds to da, and to dx, what comes from dy.
	HeadDotBack(dx, da, dy, x, a Matrix)
	// Attend is y[t] = the sum over entries s of alpha[t,s] * x[s], and alpha =
	// drop(softmax over the entries of t of leaky(left[s] + right[t])), head by
	// head. leaky has the slope given below 0. left is Cols x H of the CSR, right
	// Rows x H. Rows without entries are 0. stats (Rows x 2H) keeps, for each
	// head, the largest score and the softmax's sum.
	// An entry's weight is dropped under the key Key.With(target's vertex)
	// .With(source's vertex), the head being the column; drop.Vertices are the
	// sources' and own is the row among them at which the targets start.
	Attend(y, stats Matrix, g *CSR, x, left, right Matrix, slope float32, drop Dropout, own int)
	// AttendBack sets dx, dleft and dright. g has its Transposed.
	AttendBack(dx, dleft, dright Matrix, g *CSR, dy, stats, x, left, right Matrix, slope float32, drop Dropout, own int)
	// AttendV2 is Attend with the scores of GATv2: those of an entry are the
	// product of a (1 x H*D) and leaky(x[s] + to[t]), head by head; to is
	// Rows x H*D.
	AttendV2(y, stats Matrix, g *CSR, x, to, a Matrix, slope float32, drop Dropout, own int)
	// AttendV2Back sets dx and dto, and adds to da.
	AttendV2Back(dx, dto, da Matrix, g *CSR, dy, stats, x, to, a Matrix, slope float32, drop Dropout, own int)
}

// Learning are losses and updates.
type Learning interface {
	// CrossEntropy returns the sum of the losses of the rows whose label is not
	// negative, and how many of them the largest logit gets right (the first of
	// equal ones). With dz not left out, that is the gradient of scale times that
	// sum: 0 in rows without a label. dz may be z.
	CrossEntropy(dz, z Matrix, labels []int32, scale float64) (loss float64, right int)
	// BinaryCrossEntropy is as CrossEntropy for one yes or no a column: column
	// c of a row is yes if c is its label. The loss of a row is the sum over
	// columns.
	BinaryCrossEntropy(dz, z Matrix, labels []int32, scale float64) (loss float64, right int)
	// Adam updates w from its gradient g; m and v are its moments. All are of one
	// shape, without gaps.
	Adam(w, g, m, v Matrix, o AdamStep)
	// SGD is m = Momentum*m + (g + Decay*w), w -= Rate*m; m may be left out if
	// Momentum is 0.
	SGD(w, g, m Matrix, o SGDStep)
}

// AdamStep is one step of Adam: Step counts from 1.
type AdamStep struct {
	Rate, Beta1, Beta2, Epsilon float64
	Decay                       float64 // of the weights
	Decoupled                   bool    // AdamW: decay the weights and not the gradient
	Step                        uint64
}

// SGDStep is one step of stochastic gradient descent.
type SGDStep struct{ Rate, Momentum, Decay float64 }
