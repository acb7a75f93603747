package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// SkeletonFormat is the format name in a skeleton's metadata.
const SkeletonFormat = "hopmesh-skeleton/1"

// A Skeleton describes a shard to another node: everything but the features and the
// source's names, with the edges or only their number. It is encoded
// as a safetensors file with a shard file's tensor names.
type Skeleton struct {
	// Shard has no features, though Features is their number of columns, no Originals,
	// and of targets with columns only which rows have any. If edges are left out it has no Indptr, Indices or Weights.
	Shard *Shard
	Stats FeatureStats
	Edges int64 // edges of the shard, whether they are included or not
	// Of a skeleton without labels and marks: what Seeds says of them. Else nil.
	Seeds *Seeds
}

// Bare leaves out the labels and marks, and keeps what Seeds says of them.
func (k *Skeleton) Bare(seeds *Seeds) {
	k.Seeds, k.Shard.Labels, k.Shard.Marks = seeds, nil, nil
}

// NewSkeleton returns the skeleton of a whole shard and shares the shard's memory.
func NewSkeleton(s *Shard, stats FeatureStats, edges bool) *Skeleton {
	bare := &Shard{
		Number: s.Number, Shards: s.Shards, First: s.First, Vertices: s.Vertices, Total: s.Total,
		Features: s.Features, Classes: s.Classes, Wide: Wide{Targets: s.Targets}, DType: s.DType, Labels: s.Labels, Marks: s.Marks,
	}
	if edges {
		bare.Indptr, bare.Indices, bare.EdgeValues = s.Indptr, s.Indices, s.EdgeValues
	} else {
		bare.EdgeValues = s.valuesElsewhere()
	}
	return &Skeleton{Shard: bare, Stats: stats, Edges: int64(len(s.Indices))}
}

// Parts returns the skeleton's encoding as consecutive parts. All but the first alias its
// memory.
func (k *Skeleton) Parts() ([][]byte, error) {
	s := k.Shard
	n := int64(s.Vertices)
	var tensors []safetensors.Tensor
	parts := [][]byte{nil}
	add := func(name string, dtype safetensors.DType, data []byte, shape ...int64) {
		tensors = append(tensors, safetensors.Tensor{Name: name, DType: dtype, Shape: shape})
		parts = append(parts, data)
	}
	if s.Indptr != nil {
		add("indptr", safetensors.I64, raw(s.Indptr), n+1)
	}
	if k.Seeds != nil {
		k.Seeds.Training.add(add)
	}
	if s.Indptr != nil {
		add("indices", safetensors.I32, raw(s.Indices), int64(len(s.Indices)))
	}
	if s.Weights != nil {
		add("weights", safetensors.F32, raw(s.Weights), int64(len(s.Weights)))
	}
	if s.Related != nil && s.Indptr != nil {
		add("relations", safetensors.F32, raw(s.Related.Of), int64(len(s.Related.Of)))
	}
	if s.Labels != nil {
		add("labels", safetensors.I32, raw(s.Labels), n)
	}
	if s.EdgeRows.Columns > 0 && s.Indptr != nil {
		tensors = append(tensors, s.DType.EdgeTensor(int64(len(s.Indices)), s.EdgeRows.Columns))
		parts = append(parts, s.EdgeRows.parts())
	}
	if len(s.Marks) > 0 {
		tensors = append(tensors, safetensors.Tensor{Name: "splits", DType: safetensors.U8, Shape: []int64{int64(len(s.Marks)), n}})
		parts = append(parts, s.Marks...)
	}
	if k.Seeds != nil {
		k.Seeds.Training.addGaps(add)
	}
	layout, err := safetensors.NewLayout(tensors, k.metadata())
	if err != nil {
		return nil, fmt.Errorf("make the skeleton of shard %d: %w", s.Number, err)
	}
	parts[0] = layout.Header()
	return parts, nil
}

func (k *Skeleton) metadata() map[string]string {
	meta := k.Shard.sizes(SkeletonFormat)
	meta["edges"] = strconv.FormatInt(k.Edges, 10)
	meta["sparse"] = strconv.FormatBool(k.Stats.Sparse)
	meta["ones"] = strconv.FormatBool(k.Stats.Ones)
	meta["entries"] = strconv.FormatInt(k.Stats.Entries, 10)
	if r := k.Shard.Related; r != nil {
		if text, err := r.Types.Text(); err == nil && text != "" { // it was read from such a text
			meta["types"] = text
		}
	}
	if k.Seeds != nil {
		var counts []string
		for _, of := range k.Seeds.Splits {
			counts = append(counts, fmt.Sprintf("%d,%d,%d", of.Train, of.Val, of.Test))
		}
		meta["seeds"] = strings.Join(counts, ";")
	}
	return meta
}

// raw returns the memory of a slice. Shards are only read on little-endian machines.
func raw[T int64 | uint64 | int32 | float32 | uint16](data []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(*new(T))))
}

// A SkeletonSize holds what the size of a shard's skeleton depends on.
type SkeletonSize struct {
	Vertices, Edges  int64
	Splits           int
	Labels, Weighted bool
	EdgeRow          int // bytes of the features of an edge
	Types            int // bytes of the types of the graph, as they stand in a header
}

// SizeOf returns the SkeletonSize of a whole shard.
func SizeOf(s *Shard) SkeletonSize {
	z := SkeletonSize{int64(s.Vertices), int64(len(s.Indices)), len(s.Marks), s.Labels != nil, s.Weights != nil || s.Related != nil, s.DType.EdgeRowBytes(s.EdgeRows.Columns), 0}
	if s.Related != nil {
		z.Types = s.Related.Types.bytes()
	}
	return z
}

// Size returns an upper bound on the bytes of such a skeleton, with its edges or without,
// and with its labels and marks or only the seeds.
func (z SkeletonSize) Size(edges, labels bool) int64 {
	const header, of = 4096, 64 // of a split's counts
	n := header + of*int64(z.Splits) + int64(z.Types)
	switch {
	case !labels:
		n += (z.Vertices + 63) / 64 * 8
	case z.Labels:
		n += (4 + int64(z.Splits)) * z.Vertices
	default:
		n += int64(z.Splits) * z.Vertices
	}
	if !edges {
		return n
	}
	n += 8*(z.Vertices+1) + 4*z.Edges
	if z.Weighted {
		n += 4 * z.Edges
	}
	return n + int64(z.EdgeRow)*z.Edges
}

// Shed gives up the edges of a skeleton's shard, and the message that they came in.
func (s *Shard) Shed() {
	s.Indptr, s.Indices, s.EdgeValues, s.file = nil, nil, s.valuesElsewhere(), nil
	s.Labels = slices.Clone(s.Labels)
	for i := range s.Marks {
		s.Marks[i] = slices.Clone(s.Marks[i])
	}
}

// valuesElsewhere returns what is known of the values of edges that are not here.
func (s *Shard) valuesElsewhere() (v EdgeValues) {
	if s.Related != nil {
		v.Related = &Related{Count: s.Related.Count, Given: s.Related.Given, Types: s.Related.Types}
	}
	v.EdgeRows.Columns = s.EdgeRows.Columns
	return v
}
