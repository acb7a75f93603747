package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/link"
	"github.com/hopmesh/hopmesh/engine/mapped"
	"github.com/hopmesh/hopmesh/engine/partners"
	"github.com/hopmesh/hopmesh/engine/table"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// Pairing says which pairs of vertices are scored. Either Pairs or Top is set.
type Pairing struct {
	Pairs      string // the file that lists them
	Top        int    // how many partners are found for a vertex
	Vertices   string // the file of the vertices that partners are found for; "": all
	Neighbours bool   // neighbours are partners, too
	Relation   *int   // of all pairs, by its place; nil: they have none
}

// pairing is a prediction of pairs under way.
type pairing struct {
	Prediction
	Pairing
	order  *order
	listed *os.File // pairs of vertices, or places in the order; nil: none are listed
	count  int      // of these
	graph  *partners.Graph
	rows   partners.Rows
	// decoder scores rows by weights.
	decoder   string
	weights   []float32
	relations int            // that it knows
	learnt    *link.Relation // of a graph with types; nil: the edges of all were learnt
	near      []int32        // of a vertex, under the relation
}

// PredictPairs scores pairs by a model of links: those of a file, in its order, or the best
// partners of vertices, the best first. Vertices stand in the order of their file or, of all,
// of their names; of partners with the same score the one whose name comes first is better.
//
// Embeddings are computed as Predict does, and wait in a file. Pairs are scored by the
// processor whatever the device is, so that a score depends on embeddings alone.
func PredictPairs(ctx context.Context, p Prediction, of Pairing, to io.Writer) (err error) {
	defer mapped.End(mapped.Guard())
	defer budget.Caught(&err)
	defer mapped.CaughtAny(&err)
	q := &pairing{Prediction: p, Pairing: of}
	if q.order, err = sorted(p.Shards, p.Folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.order.close()) }()
	defer func() {
		if q.listed != nil {
			err = errors.Join(err, q.listed.Close())
		}
	}()
	if err := q.list(ctx); err != nil {
		return err
	}
	file, err := unnamed(p.Folder)
	if err != nil {
		return fmt.Errorf("make room for embeddings: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	q.rows.File = file
	if err := q.embed(ctx, file); err != nil {
		return err
	}
	if p.Intact != nil {
		if err := p.Intact(ctx); err != nil {
			return err
		}
	}
	return q.write(ctx, to)
}

// list finds what is asked for.
func (q *pairing) list(ctx context.Context) (err error) {
	needs := budget.Program + q.beside()
	if q.Pairs != "" || q.Vertices != "" {
		needs = max(needs, budget.Program+lookupMemory)
	}
	if q.Memory > 0 && needs > q.Memory {
		return fmt.Errorf("predicting needs %s of memory, and %s is what it may use: allow more with {agent.memory}", budget.Format(needs), budget.Format(q.Memory))
	}
	switch {
	case q.Pairs != "":
		q.listed, q.count, err = q.order.look(ctx, q.Pairs, 2, false, lookupMemory, q.Folder)
		return err
	case q.Vertices != "":
		if q.listed, q.count, err = q.order.look(ctx, q.Vertices, 1, true, lookupMemory, q.Folder); err != nil {
			return err
		}
	default:
		q.count = q.order.total
	}
	q.Top = min(q.Top, max(1, q.order.total-1))
	return q.arrange(ctx)
}

// beside is what the graph in the order of names takes, if partners are sought.
func (q *pairing) beside() uint64 {
	if q.Pairs != "" {
		return 0
	}
	return 8*uint64(q.order.total) + uint64(q.order.total)/4 // with two bitmaps
}

// arrange notes the place of each vertex in the order: there rows lie, so that partners come in
// the order of their names.
func (q *pairing) arrange(ctx context.Context) error {
	g := &partners.Graph{Directed: q.Relation != nil, Row: make([]uint32, q.order.total), Vertex: make([]uint32, 0, q.order.total), Sources: q.sources}
	q.graph = g
	return q.order.each(func(vertices []uint32) error {
		for _, v := range vertices {
			g.Row[v] = uint32(len(g.Vertex))
			g.Vertex = append(g.Vertex, v)
		}
		return context.Cause(ctx)
	})
}

// sources returns the sources of the edges that end at a vertex, or of those of the relation: the
// heads of all triples that are known. They are valid until the next call.
func (q *pairing) sources(v uint32) []int32 {
	s, row := q.order.of(v)
	all := s.Indices[s.Indptr[row]:s.Indptr[row+1]]
	if given := s.Related != nil && s.Related.Given; q.Relation == nil && q.learnt == nil && !given {
		return all
	}
	q.near = q.near[:0]
	for i, number := range s.Related.Of[s.Indptr[row]:s.Indptr[row+1]] {
		if q.learnt != nil {
			if int(number) == q.learnt.Number {
				q.near = append(q.near, all[i])
			}
			continue
		}
		// Edges with a given split that are no triples have the relation 0, graph.PairEdge.
		if r, _, reversed := graph.TripleOf(int(number), s.Related.Triples()); r == q.relation() && !reversed {
			q.near = append(q.near, all[i])
		}
	}
	return q.near
}

// ends marks the rows at which edges of the learnt relation begin, and those at which they end: the
// former have partners, and the latter are some.
func (q *pairing) ends(ctx context.Context) (begin, end bitmap, err error) {
	begin, end = newBitmap(q.order.total), newBitmap(q.order.total)
	for v := range uint32(q.order.total) {
		if v%(1<<16) == 0 && ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		for _, u := range q.sources(v) {
			if uint32(u) != v { // nothing is learnt of it
				begin.set(q.graph.Row[u])
				end.set(q.graph.Row[v])
			}
		}
	}
	return begin, end, nil
}

// A bitmap says something of each row.
type bitmap []uint64

func newBitmap(n int) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(row uint32)      { b[row/64] |= 1 << (row % 64) }
func (b bitmap) has(row uint32) bool { return b[row/64]>>(row%64)&1 == 1 }

// relation returns the place of the pairs' relation, if they have one, else 0.
func (q *pairing) relation() int {
	if q.Relation == nil {
		return 0
	}
	return *q.Relation
}

// embed computes the embeddings of all vertices.
func (q *pairing) embed(ctx context.Context, file *os.File) error {
	put := func(row int, values []float32) error {
		if _, err := file.WriteAt(bytesOf(values), int64(row)*int64(q.rows.Columns)*4); err != nil {
			return fmt.Errorf("keep embeddings until all are there: %w: free some space in the data directory", err)
		}
		return nil
	}
	return predict(ctx, q.Prediction, trained.PredictOptions{Beside: q.beside(), Writing: q.needs},
		func(a trained.Prediction) error {
			if a.Links == nil {
				return fmt.Errorf("the model learnt no links, but %s of vertices: pairs are scored by one of {task} link", a.Task.Name)
			}
			switch r := a.Links.Relations; {
			case r > 0 && q.Relation == nil:
				return errors.New("the model has learnt triples: give --relation, the name of the relation of all pairs")
			case r == 0 && q.Relation != nil:
				return errors.New("the model has learnt links without relations: leave --relation out")
			case q.relation() > 0 && q.relation() >= r:
				return fmt.Errorf("the model has learnt %d relations, and the dataset has more: choose the dataset on which it was trained", r)
			}
			q.relations = a.Links.Relations
			if of := a.Links.Relation; of != nil && (a.Relates || q.graph != nil) {
				var err error
				if q.learnt, err = of.In(graph.TypesOf(q.order.shards), a.Relates); err != nil {
					return err
				}
			}
			q.decoder, q.weights, q.rows.Count, q.rows.Columns = a.Links.Decoder, a.Decoder, a.Vertices, a.Columns
			return room(q.Folder, uint64(a.Vertices)*uint64(a.Columns)*4)
		},
		func(first int, values []float32) error {
			if q.graph == nil {
				return put(first, values)
			}
			places, columns := q.graph.Row[first:][:len(values)/q.rows.Columns], q.rows.Columns
			for len(places) > 0 { // those that follow each other are written together
				n := 1
				for n < len(places) && places[n] == places[n-1]+1 {
					n++
				}
				if err := put(int(places[0]), values[:n*columns]); err != nil {
					return err
				}
				places, values = places[n:], values[n*columns:]
			}
			return nil
		})
}

// needs returns what it takes of memory to score and to write, in blocks as small as can be.
func (q *pairing) needs(of trained.Prediction) uint64 {
	o := partners.Options{Rows: partners.Rows{Count: of.Vertices, Columns: of.Columns}, Most: max(1, q.Top)}
	least := q.writing() + o.Least()
	if of.Links != nil {
		least += link.BlocksBytes(of.Links.Decoder, of.Columns, of.Links.Relations, runtime.GOMAXPROCS(0))
	}
	return least
}

// writing is what it takes to write.
func (q *pairing) writing() uint64 {
	const ids = 1 << 20 // of the rows that are written together, and their scores
	return ids + table.PairMemory(q.format(), q.table())
}

// table describes the table that is written.
func (q *pairing) table() table.Pairs {
	t := table.Pairs{Rows: q.count, Names: q.order.names}
	if q.Top > 0 {
		t.Rows, t.Fewer = q.count*q.Top, true
	}
	return t
}

// write scores pairs, or finds partners, and writes them.
func (q *pairing) write(ctx context.Context, to io.Writer) error {
	open := func(threads int) tensor.Device { return cpu.New(threads) }
	blocks, err := link.NewBlocks(q.decoder, q.rows.Columns, q.relations, q.weights, link.Threads{Count: runtime.GOMAXPROCS(0), Open: open})
	if err != nil {
		return err
	}
	defer blocks.Close()
	out, err := table.NewPairs(to, q.format(), q.table())
	if err != nil {
		return err
	}
	w := &pairRows{order: q.order, out: out}
	if q.Top > 0 {
		err = q.top(ctx, w, blocks)
	} else {
		err = q.given(ctx, w, blocks)
	}
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return err
	}
	return out.Close()
}

// given scores the pairs that were listed.
func (q *pairing) given(ctx context.Context, w *pairRows, blocks link.Blocks) error {
	s := partners.NewScorer(q.rows, blocks, q.relation())
	pairs, scores := make([]uint32, 2*atOnce), make([]float32, atOnce)
	var sources, targets []uint32
	for first := 0; first < q.count; first += atOnce {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(atOnce, q.count-first)
		if err := q.read(pairs[:2*n], 2*first); err != nil {
			return err
		}
		sources, targets = sources[:0], targets[:0]
		for i := range n {
			sources, targets = append(sources, pairs[2*i]), append(targets, pairs[2*i+1])
		}
		if err := s.Score(ctx, scores[:n], sources, targets); err != nil {
			return err
		}
		for i := range n {
			if err := w.add(sources[i], targets[i], scores[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads what was listed from a place on.
func (q *pairing) read(to []uint32, first int) error {
	if _, err := q.listed.ReadAt(bytesOf(to), 4*int64(first)); err != nil {
		return fmt.Errorf("read back what is asked for: %w", err)
	}
	return nil
}

// top finds the best partners of some vertices, or of all.
func (q *pairing) top(ctx context.Context, w *pairRows, blocks link.Blocks) error {
	o := partners.Options{Rows: q.rows, Blocks: blocks, Relation: q.relation(), Most: q.Top, Threads: runtime.GOMAXPROCS(0)}
	if !q.Neighbours {
		o.Graph = q.graph
	}
	if q.Memory > 0 {
		// At least Least, as needs says.
		o.Memory = q.Memory - budget.Program - q.beside() - q.writing() - link.BlocksBytes(q.decoder, q.rows.Columns, q.relations, runtime.GOMAXPROCS(0))
	}
	var begin bitmap
	if q.learnt != nil {
		var end bitmap
		var err error
		if begin, end, err = q.ends(ctx); err != nil {
			return err
		}
		o.Only = end.has
	}
	s := partners.NewSearch(o)
	defer s.Close()
	rows := make([]uint32, s.AtOnce())
	for first := 0; first < q.count; first += len(rows) {
		rows := rows[:min(len(rows), q.count-first)]
		if q.listed == nil {
			for i := range rows {
				rows[i] = uint32(first + i)
			}
		} else if err := q.read(rows, first); err != nil {
			return err
		}
		if begin != nil {
			if rows = slices.DeleteFunc(rows, func(row uint32) bool { return !begin.has(row) }); len(rows) == 0 {
				continue
			}
		}
		if err := s.Find(ctx, rows); err != nil {
			return err
		}
		for i, row := range rows {
			for _, partner := range s.Best(i) {
				if err := w.add(q.graph.Vertex[row], q.graph.Vertex[partner.Row], partner.Score); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pairRows gathers pairs with the names of their vertices, and writes many together.
type pairRows struct {
	order            *order
	out              table.PairWriter
	sources, targets [][]byte
	scores           []float32
}

// add adds a pair.
func (r *pairRows) add(source, target uint32, score float32) error {
	i := len(r.scores)
	if i == len(r.sources) {
		r.sources, r.targets = append(r.sources, nil), append(r.targets, nil)
	}
	r.sources[i], r.targets[i] = r.order.id(r.sources[i][:0], source), r.order.id(r.targets[i][:0], target)
	if r.scores = append(r.scores, score); len(r.scores) == atOnce {
		return r.flush()
	}
	return nil
}

// flush writes what was gathered.
func (r *pairRows) flush() error {
	n := len(r.scores)
	err := r.out.Write(r.sources[:n], r.targets[:n], r.scores)
	r.scores = r.scores[:0]
	return err
}
