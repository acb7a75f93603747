package tensor

import "github.com/hopmesh/hopmesh/engine/keyed"

// An Arena allocates memory of a device; Reset makes all of it available again. Its
// memory is not initialised. It grows when needed, which is expensive; in steady state it
// allocates nothing. It is not safe for concurrent use.
type Arena interface {
	Alloc(t Type, rows, cols int) Matrix // 64-byte aligned, without gaps between rows
	Reset()
	Bytes() int // total memory held
	Close()
}

// A Device runs tensor operations. It is not safe for concurrent use, but may use many
// threads itself. Results do not depend on their number.
//
// Matrices passed together have the shapes that the operation's comment states; a wrong
// shape is a bug and panics. Unless stated otherwise an output overlaps no input, `add`
// means that the result is added to the output's values, and any stride is allowed. A
// zero Matrix stands for an omitted argument. Empty matrices are allowed everywhere.
type Device interface {
	Name() string // "cpu (AVX-512, 2 threads)"
	Type() Type   // type of computation: F32, or F64 on the reference device
	Close()

	// NewArena returns an arena that holds this many bytes at once and grows beyond. Its
	// memory is touched now, not during a step.
	NewArena(bytes int) (Arena, error)

	// Write fills m with numbers in row order, Read is the inverse. Both convert.
	Write(m Matrix, from []float64)
	Read(to []float64, m Matrix)
	// Write32 and Read32 are Write and Read for float32.
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

// Dropout drops elements with a probability and scales the others up. The choice depends
// only on the key, the row's vertex and the column: an element is dropped if
// Key.With(vertex).Column(column) < Threshold(P), and otherwise multiplied by 1/(1-P).
type Dropout struct {
	P        float32 // 0: no dropout
	Key      keyed.Key
	Vertices []uint32 // of the rows
}

// An Epilogue is applied to a result as it is stored, in this order: bias, activation,
// dropout. The zero Epilogue does nothing.
type Epilogue struct {
	Bias       Matrix // 1 x Cols, or empty
	Activation Activation
	Dropout    Dropout
}

// Shape is the transposition of a product's operands.
type Shape uint8

// NN is a*b, TN is transposed a times b, NT is a times transposed b.
const (
	NN Shape = iota
	TN
	NT
)

// Products are the products of dense matrices.
type Products interface {
	// MatMul computes c = a*b in the given shape, then applies e (nil does nothing). With
	// add, c is added before e.
	MatMul(c, a, b Matrix, shape Shape, add bool, e *Epilogue)
}

// Rows are operations on each row, or each element, by itself.
type Rows interface {
	Zero(m Matrix)
	// Combine computes y = alpha*a + beta*b; b may be omitted. y may be a or b. The types
	// of a, b and y may be any floating-point types, so it also copies with conversion.
	Combine(y Matrix, alpha float64, a Matrix, beta float64, b Matrix)
	// Apply computes y = e(x). y may be x.
	Apply(y, x Matrix, e *Epilogue)
	// ApplyBack computes the gradient of e: dx from dy and y, which is the output of e.
	// With a bias, the columns' sums of dx are added to dbias (1 x Cols) unless that is
	// omitted. dx may be dy. With dropout, e must be the same as in Apply.
	ApplyBack(dx, dbias, dy, y Matrix, e *Epilogue)
	// Gather sets y[i] to the row of vertex ids[i], which is in the last part whose First
	// is not above it. Types may differ, as for Combine.
	Gather(y Matrix, parts []Part, ids []uint32)
	// ScatterAdd computes y[rows[i]] += x[i]; if a row occurs more than once it is added
	// to in the order of i.
	ScatterAdd(y, x Matrix, rows []int32)
	// ScaleRows computes y[i] = scale[i] * x[i]; scale is Rows x 1. y may be x.
	ScaleRows(y, x, scale Matrix)
	// LayerNorm computes y = e((x-mean)/sqrt(variance+1e-5)*gamma + beta) of each row; e
	// has no bias. stats (Rows x 2) keeps mean and 1/deviation for backward.
	LayerNorm(y, stats, x, gamma, beta Matrix, e *Epilogue)
	// LayerNormBack takes the gradient at LayerNorm's output before e. It adds
	// to dgamma and dbeta (1 x Cols). dx may be dy.
	LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma Matrix)
	// Max keeps the larger element and its index: where x > y, or with first, y = x and
	// which = index. which is I32.
	Max(y, which, x Matrix, index int, first bool)
	// MaxBack sets dx to dy where which is index, else to 0.
	MaxBack(dx, dy, which Matrix, index int)
	// ColumnSums adds the sums of x's columns to sums (1 x Cols).
	ColumnSums(sums, x Matrix)
	// Densify writes the rows of g as a dense matrix.
	Densify(y Matrix, g *CSR)
	// DropValues sets to[i] to from[i] after dropout, for the values from and to (1 x
	// Entries) of the entries of g; if from is omitted it is the values of g. The vertex
	// is that of the row, the column that of the entry.
	DropValues(to, from Matrix, g *CSR, d Dropout)
	// Finite reports whether all elements are finite.
	Finite(m Matrix) bool
}

// A Part is the rows of consecutive vertices.
type Part struct {
	First uint32 // the vertex of row 0
	X     Matrix
}

// Aggregation is how a target's row is computed from its sources' rows.
type Aggregation uint8

// Sum adds the rows weighted by the values of the CSR; Mean divides that by the number of
// entries, and is 0 if there are none.
const (
	Sum Aggregation = iota
	Mean
)

// Aggregations are operations along edges.
type Aggregations interface {
	// Aggregate computes y = e(the sources' rows of x, aggregated); y has g.Rows rows, x
	// g.Cols. x may be BF16. values, if not omitted, are 1 x Entries and replace
	// g.Values. With add, y is added before e.
	Aggregate(y Matrix, g *CSR, values, x Matrix, how Aggregation, add bool, e *Epilogue)
	// AggregateBack computes the gradient with respect to x: dx[source] = the sum over
	// its targets. g needs its Transposed.
	AggregateBack(dx Matrix, g *CSR, values, dy Matrix, how Aggregation, add bool)
	// AggregateMax computes the maximum of each column. which (I32) is the row of x it
	// came from, the first entry in case of ties; rows without entries get -1 in which
	// and 0 in y.
	AggregateMax(y, which Matrix, g *CSR, x Matrix)
	// AggregateMaxBack computes its gradient, with add as in AggregateBack.
	AggregateMaxBack(dx Matrix, g *CSR, dy, which Matrix, add bool)
}

// Attentions are the operations of graph attention. With H heads of D columns, x has H*D
// columns, head after head.
type Attentions interface {
	// HeadDot sets y[i,h] to the product of x[i] and a (1 x H*D) over the columns of head
	// h; y is Rows x H.
	HeadDot(y, x, a Matrix)
	// HeadDotBack adds the gradients, given dy, to da and dx.
	HeadDotBack(dx, da, dy, x, a Matrix)
	// Attend computes y[t] = the sum over entries s of alpha[t,s] * x[s], with alpha =
	// drop(softmax over the entries of t of leaky(left[s] + right[t])), head by head.
	// leaky has the given slope below 0. left is Cols x H of the CSR, right Rows x H.
	// Rows without entries are 0. stats (Rows x 2H) keeps, for each head, the largest
	// score and the softmax's sum. The dropout of an entry's weight uses the key
	// Key.With(target's vertex).With(source's vertex), with the head as column;
	// drop.Vertices are the sources' and own is the row among them at which the targets
	// start.
	Attend(y, stats Matrix, g *CSR, x, left, right Matrix, slope float32, drop Dropout, own int)
	// AttendBack sets dx, dleft and dright. g needs its Transposed.
	AttendBack(dx, dleft, dright Matrix, g *CSR, dy, stats, x, left, right Matrix, slope float32, drop Dropout, own int)
	// AttendV2 is Attend with the scores of GATv2: the score of an entry is the product
	// of a (1 x H*D) and leaky(x[s] + to[t]), head by head; to is Rows x H*D.
	AttendV2(y, stats Matrix, g *CSR, x, to, a Matrix, slope float32, drop Dropout, own int)
	// AttendV2Back sets dx and dto, and adds to da.
	AttendV2Back(dx, dto, da Matrix, g *CSR, dy, stats, x, to, a Matrix, slope float32, drop Dropout, own int)
}

// Learning are losses and optimizer updates.
type Learning interface {
	// CrossEntropy returns the sum of the losses of the rows whose label is not negative,
	// and how many of them are predicted correctly (the first of equal logits wins). dz,
	// unless omitted, is set to the gradient of scale times that sum: 0 in rows without a
	// label. dz may be z.
	CrossEntropy(dz, z Matrix, labels []int32, scale float64) (loss float64, right int)
	// BinaryCrossEntropy is CrossEntropy with one binary label per column: that of column
	// c is positive if c is the row's label. The loss of a row is the sum over columns.
	BinaryCrossEntropy(dz, z Matrix, labels []int32, scale float64) (loss float64, right int)
	// Adam updates w from its gradient g; m and v are its moments. All have the same
	// shape, without gaps.
	Adam(w, g, m, v Matrix, o AdamStep)
	// SGD computes m = Momentum*m + (g + Decay*w), w -= Rate*m; m may be omitted if
	// Momentum is 0.
	SGD(w, g, m Matrix, o SGDStep)
}

// AdamStep is one step of Adam: Step counts from 1.
type AdamStep struct {
	Rate, Beta1, Beta2, Epsilon float64
	Decay                       float64 // of the weights
	Decoupled                   bool    // AdamW: decay the weights, not the gradient
	Step                        uint64
}

// SGDStep is one step of stochastic gradient descent.
type SGDStep struct{ Rate, Momentum, Decay float64 }
