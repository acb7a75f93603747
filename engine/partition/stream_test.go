package partition

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
)

// streamHeld is a Stream of a graph in memory.
type streamHeld struct {
	Graph
	size   uint32 // vertices of a block
	passes int
	damage func(*Block) error // may be nil
}

func (h *streamHeld) Vertices() uint32  { return uint32(h.vertices()) }
func (h *streamHeld) HalfEdges() uint64 { return uint64(len(h.Indices)) }
func (h *streamHeld) Constraints() int  { return h.Graph.Constraints }

func (h *streamHeld) Blocks(_ context.Context, yield func(Block) error) error {
	h.passes++
	n, c := h.Vertices(), h.Graph.Constraints
	indptr := make([]int64, 0, h.size+1)
	for first := uint32(0); first < n; first += h.size {
		end := min(first+h.size, n)
		indptr = indptr[:0]
		for v := first; v <= end; v++ {
			indptr = append(indptr, h.Indptr[v]-h.Indptr[first])
		}
		b := Block{First: first, Indptr: indptr, Indices: h.Indices[h.Indptr[first]:h.Indptr[end]],
			Weights: h.Weights[int(first)*c : int(end)*c]}
		if h.damage != nil {
			if err := h.damage(&b); err != nil {
				return err
			}
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// streamMake makes a graph up, with the weights that an import gives it: 1, the
// edges to a vertex, whether it is for training.
func streamMake(tb testing.TB, o generate.Options) *streamHeld {
	tb.Helper()
	s, err := generate.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	n := s.Meta().Vertices
	h := &streamHeld{Graph: Graph{Indptr: make([]int64, n+1), Constraints: 3, Weights: make([]uint32, 3*int(n))}, size: 5000}
	each := func(do func(from, to uint32)) {
		err := s.Edges(tb.Context(), func(b graph.EdgeBatch) error {
			for i := range b.Src {
				do(b.Src[i], b.Dst[i])
				if o.Kind == "rmat" {
					do(b.Dst[i], b.Src[i])
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	each(func(from, to uint32) {
		h.Indptr[from+1]++
		h.Weights[3*to+1]++
	})
	for v := range n {
		h.Indptr[v+1] += h.Indptr[v]
	}
	h.Indices = make([]uint32, h.Indptr[n])
	at := slices.Clone(h.Indptr)
	each(func(from, to uint32) {
		h.Indices[at[from]] = to
		at[from]++
	})
	for v := range n {
		h.Weights[3*v] = 1
		if s.Splits()[0][v] == graph.Train {
			h.Weights[3*v+2] = 1
		}
	}
	return h
}

// streamCut is the share of edges between parts.
func streamCut(h *streamHeld, part []uint16) float64 {
	cut := 0
	for v := range h.vertices() {
		for _, u := range h.Indices[h.Indptr[v]:h.Indptr[v+1]] {
			if part[u] != part[v] {
				cut++
			}
		}
	}
	return float64(cut) / float64(max(1, len(h.Indices)))
}

// streamHeaviest is, by constraint, the heaviest part over the average one, and
// how many parts have no vertices.
func streamHeaviest(h *streamHeld, part []uint16, parts int) (heaviest []float64, empty int) {
	count := make([]int, parts)
	for _, p := range part {
		count[p]++
	}
	for c := range h.Graph.Constraints {
		load, total := make([]float64, parts), 0.0
		for v, p := range part {
			w := float64(h.Weights[v*h.Graph.Constraints+c])
			load[p] += w
			total += w
		}
		heaviest = append(heaviest, slices.Max(load)*float64(parts)/total)
	}
	for _, n := range count {
		if n == 0 {
			empty++
		}
	}
	return heaviest, empty
}

var streamTolerance = []float64{1.05, 1.10, 1.10}

func streamPart(tb testing.TB, h *streamHeld, o Options) []uint16 {
	tb.Helper()
	if o.Tolerance == nil {
		o.Tolerance = streamTolerance[:h.Graph.Constraints]
	}
	h.passes = 0
	part, err := Streaming(tb.Context(), h, o)
	if err != nil {
		tb.Fatal(err)
	}
	if len(part) != h.vertices() {
		tb.Fatalf("%d vertices have a part, of %d", len(part), h.vertices())
	}
	return part
}

var (
	streamArxiv       = generate.Options{Preset: "arxiv", Scale: 0.25}
	streamProducts    = generate.Options{Preset: "products", Scale: 0.02}
	streamHubs        = generate.Options{Kind: "rmat", Vertices: 1 << 15, Edges: 1 << 18, Classes: 2}
	streamCommunities = generate.Options{Kind: "sbm", Vertices: 32_000, Edges: 640_000, Communities: 128, Classes: 4, Inside: 0.9}
)

func TestStreamingIsBalancedAndFarBelowRandom(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     generate.Options
		parts int
		most  float64 // cut
	}{
		{"arxiv", streamArxiv, 16, 0.24},
		{"arxiv", streamArxiv, 5, 0.18},
		{"products", streamProducts, 16, 0.20},
		{"communities", streamCommunities, 64, 0.165},
		{"hubs", streamHubs, 16, 0.87},
		{"hubs", streamHubs, 300, 0.93},
	} {
		h := streamMake(t, c.o)
		part := streamPart(t, h, Options{Parts: c.parts, Seed: 1})
		heaviest, empty := streamHeaviest(h, part, c.parts)
		cut := streamCut(h, part)
		t.Logf("%s in %d parts: cut %.3f, at random %.3f, balance %.3f, %d passes", c.name, c.parts, cut, 1-1/float64(c.parts), heaviest, h.passes)
		if cut > c.most || empty > 0 {
			t.Errorf("%s in %d parts: cut %.3f, %d parts without vertices", c.name, c.parts, cut, empty)
		}
		for i, x := range heaviest {
			// Where a vertex weighs more than a part should, the heaviest may weigh as much.
			average, largest := 0.0, 0.0
			for v := range h.vertices() {
				w := float64(h.Weights[v*3+i])
				average += w / float64(c.parts)
				largest = max(largest, w)
			}
			if x > max(streamTolerance[i], largest/average)+1e-9 {
				t.Errorf("%s in %d parts: constraint %d: %.4f times the average", c.name, c.parts, i, x)
			}
		}
	}
}

func TestStreamingDependsOnTheSeedAlone(t *testing.T) {
	h := streamMake(t, streamArxiv)
	want := streamPart(t, h, Options{Parts: 16, Seed: 4, Threads: 1})
	for _, threads := range []int{0, 2, 3, 8, 100} {
		if !slices.Equal(want, streamPart(t, h, Options{Parts: 16, Seed: 4, Threads: threads})) {
			t.Errorf("%d threads give another result", threads)
		}
	}
	if slices.Equal(want, streamPart(t, h, Options{Parts: 16, Seed: 5})) {
		t.Error("the seed does not matter")
	}
	// Here a sub-block has enough edges for several threads.
	h = streamMake(t, generate.Options{Kind: "sbm", Vertices: 20_000, Edges: 2_600_000, Classes: 4})
	want = streamPart(t, h, Options{Parts: 8, Threads: 1})
	for _, threads := range []int{2, 5} {
		if !slices.Equal(want, streamPart(t, h, Options{Parts: 8, Threads: threads})) {
			t.Errorf("%d threads give another result on a dense graph", threads)
		}
	}
}

// Four groups of four communities, which share more with their group than with
// others: each run of four parts must be a group.
func TestStreamingNumbersPartsByNearness(t *testing.T) {
	const communities, size = 16, 300
	groupOf := func(v uint32) uint32 { return v / size % 4 } // not in the order of ids
	h := streamPlanted(communities*size, 40, func(v uint32, random uint64) uint32 {
		u := uint32(random % size)
		switch kind := random >> 32 % 10; {
		case kind < 6:
			return v/size*size + u
		case kind < 9:
			return (random32(random)%4*4+groupOf(v))*size + u
		}
		return uint32(random>>16) % (communities * size)
	})
	part := streamPart(t, h, Options{Parts: communities, Tolerance: []float64{1.1}})
	var seen [communities / 4][4]int
	for v, p := range part {
		seen[p/4][groupOf(uint32(v))]++
	}
	for run, groups := range seen {
		if slices.Max(groups[:]) < 3*4*size/4 {
			t.Errorf("parts %d to %d have %v vertices of the groups", 4*run, 4*run+3, groups)
		}
	}
}

func random32(random uint64) uint32 { return uint32(randomMix(random, 1) >> 40) }

// streamPlanted joins each vertex with half as many others as degree says.
func streamPlanted(vertices uint32, degree int, other func(v uint32, random uint64) uint32) *streamHeld {
	near := make([][]uint32, vertices)
	for v := range vertices {
		for i := range degree / 2 {
			if u := other(v, randomMix(uint64(v), uint64(i))); u != v {
				near[v], near[u] = append(near[v], u), append(near[u], v)
			}
		}
	}
	h := &streamHeld{Graph: Graph{Indptr: []int64{0}, Constraints: 1}, size: 1000}
	for _, us := range near {
		h.Indices = append(h.Indices, us...)
		h.Indptr = append(h.Indptr, int64(len(h.Indices)))
		h.Weights = append(h.Weights, 1)
	}
	return h
}

// The block size is the caller's, and may depend on the memory there is.
func TestStreamingDoesNotDependOnTheBlocks(t *testing.T) {
	h := streamMake(t, generate.Options{Kind: "sbm", Vertices: 2_000, Edges: 20_000, Classes: 4, Communities: 8})
	want := streamPart(t, h, Options{Parts: 4})
	for _, h.size = range []uint32{1, 7, 256, 2_000} {
		if !slices.Equal(want, streamPart(t, h, Options{Parts: 4})) {
			t.Errorf("blocks of %d give another result", h.size)
		}
	}
}

func TestStreamingOfTheSmallest(t *testing.T) {
	for n := range uint32(12) {
		for parts := 1; parts <= max(1, int(n)); parts++ {
			h := streamPlanted(n, 4, func(_ uint32, random uint64) uint32 { return uint32(random % uint64(n)) })
			part := streamPart(t, h, Options{Parts: parts})
			if n == 0 {
				continue
			}
			if heaviest, empty := streamHeaviest(h, part, parts); empty > 0 || heaviest[0] > float64((int(n)+parts-1)/parts)*float64(parts)/float64(n)+1e-9 {
				t.Errorf("%d vertices in %d parts: %v", n, parts, part)
			}
		}
	}
	h := streamPlanted(5_000, 0, nil) // no edges at all
	if heaviest, empty := streamHeaviest(h, streamPart(t, h, Options{Parts: 64}), 64); heaviest[0] > 1.05 || empty > 0 {
		t.Errorf("without edges: %v, %d empty", heaviest, empty)
	}
	h = streamPlanted(0, 0, nil)
	streamPart(t, h, Options{Parts: 64})
	h = streamPlanted(100, 0, nil)
	if part := streamPart(t, h, Options{Parts: 1}); slices.Max(part) != 0 {
		t.Errorf("one part: %v", part)
	}
}

func TestStreamingRefuses(t *testing.T) {
	h := streamPlanted(10, 2, func(v uint32, _ uint64) uint32 { return (v + 1) % 10 })
	for want, o := range map[string]Options{
		"10 vertices can't be cut into 11 parts": {Parts: 11, Tolerance: []float64{1.05}},
		"0 parts":                                {Parts: 0, Tolerance: []float64{1.05}},
		"1025 parts":                             {Parts: 1025, Tolerance: []float64{1.05}},
		"0 tolerances":                           {Parts: 2},
		"tolerance 0 is 0.5":                     {Parts: 2, Tolerance: []float64{0.5}},
		"2 tolerances for 1 constraints":         {Parts: 2, Tolerance: []float64{2, 2}},
	} {
		if _, err := Streaming(t.Context(), h, o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	h.Graph.Constraints = 0
	if _, err := Streaming(t.Context(), h, Options{Parts: 2}); !errors.Is(err, ErrGraph) {
		t.Error(err)
	}
}

func TestStreamingOfADamagedStream(t *testing.T) {
	for name, damage := range map[string]func(*Block) error{
		"first":         func(b *Block) error { b.First += 1; return nil },
		"neighbour":     func(b *Block) error { b.Indices = slices.Clone(b.Indices); b.Indices[3] = 5_000; return nil },
		"indptr falls":  func(b *Block) error { b.Indptr[1] = 1 << 40; return nil },
		"indptr begins": func(b *Block) error { b.Indptr[0] = -1; return nil },
		"indptr ends":   func(b *Block) error { b.Indices = b.Indices[1:]; return nil },
		"no indptr":     func(b *Block) error { b.Indptr = nil; return nil },
		"weights":       func(b *Block) error { b.Weights = b.Weights[1:]; return nil },
		"too many":      func(b *Block) error { b.Indptr = append(slices.Clone(b.Indptr), make([]int64, 5_000)...); return nil },
	} {
		for pass := range 3 {
			h := streamPlanted(5_000, 10, func(_ uint32, random uint64) uint32 { return uint32(random % 5_000) })
			h.damage = func(b *Block) error {
				if h.passes == pass+1 && b.First == 3_000 {
					return damage(b)
				}
				return nil
			}
			if _, err := Streaming(t.Context(), h, Options{Parts: 4, Tolerance: []float64{1.05}}); !errors.Is(err, ErrGraph) {
				t.Errorf("%s in pass %d: %v", name, pass, err)
			}
		}
	}
	h := streamPlanted(5_000, 10, func(_ uint32, random uint64) uint32 { return uint32(random % 5_000) })
	short := &streamShort{h}
	if _, err := Streaming(t.Context(), short, Options{Parts: 4, Tolerance: []float64{1.05}}); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "it has 5001 vertices, and 5000 came") {
		t.Error(err)
	}
}

// streamShort promises a vertex more than it has.
type streamShort struct{ *streamHeld }

func (s *streamShort) Vertices() uint32 { return s.streamHeld.Vertices() + 1 }

func TestStreamingStops(t *testing.T) {
	enough := errors.New("enough")
	for pass := range 4 {
		h := streamPlanted(5_000, 10, func(_ uint32, random uint64) uint32 { return uint32(random % 5_000) })
		h.damage = func(b *Block) error {
			if h.passes == pass+1 && b.First == 2_000 {
				return enough
			}
			return nil
		}
		o := Options{Parts: 4, Tolerance: []float64{1.05}}
		if part, err := Streaming(t.Context(), h, o); !errors.Is(err, enough) || part != nil {
			t.Errorf("a stream that fails in pass %d: %v", pass, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		h.damage = func(b *Block) error {
			if context.Cause(ctx) != nil {
				t.Errorf("went on at %d after the context had ended", b.First)
			}
			if h.passes == pass+1 && b.First == 2_000 {
				cancel(enough)
			}
			return nil
		}
		h.passes = 0
		if _, err := Streaming(ctx, h, o); !errors.Is(err, enough) {
			t.Errorf("a context that ends in pass %d: %v", pass, err)
		}
	}
}

func TestStreamingReports(t *testing.T) {
	h, last, times := streamMake(t, streamHubs), 0.0, 0
	streamPart(t, h, Options{Parts: 16, Report: func(done float64) {
		if done < last || done > 1 {
			t.Errorf("%v after %v", done, last)
		}
		last = done
		times++
	}})
	if last != 1 || times < 10 {
		t.Errorf("reported %d times, at last %v", times, last)
	}
}

// What Streaming holds at its peak is no more than it says, and not far from that.
func TestStreamingMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // so that garbage hardly counts
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for _, parts := range []int{2, 64} {
		h := streamMake(t, streamArxiv)
		runtime.GC()
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		stop, peak := make(chan struct{}), make(chan uint64)
		go func() {
			most := before
			for {
				metrics.Read(sample)
				most = max(most, sample[0].Value.Uint64())
				select {
				case <-stop:
					peak <- most
					return
				default:
					runtime.Gosched()
				}
			}
		}()
		streamPart(t, h, Options{Parts: parts, Threads: 8})
		close(stop)
		got, most := <-peak-before, StreamingMemory(h.Vertices(), h.HalfEdges(), parts, 3)
		t.Logf("%d parts: %d bytes held, said to be at most %d", parts, got, most)
		if got > most || got < most/4 {
			t.Errorf("%d parts: %d bytes held, said to be at most %d", parts, got, most)
		}
	}
	// Eight bytes a vertex, and an eighth of what the edges take.
	if m, edges := StreamingMemory(100_000_000, 6_400_000_000, 64, 3), uint64(6_400_000_000*4); m < 800_000_000 || m > edges/8 {
		t.Errorf("a hundred million vertices take %d bytes, their edges %d", m, edges)
	}
}

func BenchmarkStreaming(b *testing.B) {
	for _, c := range []struct {
		name string
		o    generate.Options
	}{
		{"sbm", generate.Options{Preset: "products", Scale: 0.2}},
		{"rmat", generate.Options{Kind: "rmat", Vertices: 1 << 18, Edges: 1 << 22, Classes: 2}},
	} {
		h := streamMake(b, c.o)
		b.Run(c.name, func(b *testing.B) {
			var part []uint16
			for b.Loop() {
				part = streamPart(b, h, Options{Parts: 64})
			}
			b.ReportMetric(float64(len(h.Indices)/2)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
			b.ReportMetric(streamCut(h, part), "cut")
			b.ReportMetric(float64(h.passes), "passes")
		})
	}
}

var _ Stream = (*streamHeld)(nil)
