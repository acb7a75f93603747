package embedding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

const (
	vertices = 40
	columns  = 5
)

func table(optimizer string) *Table {
	return New(Options{Vertices: vertices, Columns: columns, Seed: 3, Optimizer: nn.OptimizerSpec{Kind: optimizer, WeightDecay: 0.5}, Shards: 8})
}

// A group is what a group of seed vertices adds.
type group struct {
	grain    int
	vertices []uint32
	gradient []float32
}

// groups draws those of a step, one of each grain, whose vertices overlap.
func groups(random *rand.Rand, grains int) (all []group) {
	for grain := range grains {
		g := group{grain: grain}
		for v := range uint32(vertices) {
			if random.IntN(4) > 0 || v%5 == 0 { // others are not touched
				continue
			}
			g.vertices = append(g.vertices, v)
			for range columns {
				g.gradient = append(g.gradient, float32(random.NormFloat64()))
			}
		}
		all = append(all, g)
	}
	return all
}

func add(t *Table, g *group) {
	t.Add(cpu.New(1), g.grain, g.vertices, tensor.OverF32(len(g.vertices), columns, g.gradient))
}

// Rows are drawn by seed and vertex, and have a length of about 1.
func TestInitialRows(t *testing.T) {
	a, b := table("adam"), table("adam")
	if !slices.Equal(a.rows, b.rows) {
		t.Error("the same seed draws other rows")
	}
	larger := New(Options{Vertices: 40_000, Columns: columns, Seed: 3, Optimizer: nn.OptimizerSpec{Kind: "sgd"}})
	if !slices.Equal(larger.rows[:len(a.rows)], a.rows) {
		t.Error("the row of a vertex depends on how many there are")
	}
	sum, most := 0.0, 0.0
	for _, x := range larger.rows {
		sum, most = sum+float64(x)*float64(x), max(most, math.Abs(float64(x)))
	}
	if length := sum / 40_000; math.Abs(length-1) > 0.02 || most > math.Sqrt(3.0/columns) {
		t.Errorf("rows have a mean square length of %g, and the largest number is %g", length, most)
	}
	other := New(Options{Vertices: vertices, Columns: columns, Seed: 4, Optimizer: nn.OptimizerSpec{Kind: "sgd"}})
	if slices.Equal(other.rows, a.rows) {
		t.Error("another seed draws the same rows")
	}
}

// Updates are those of the formula, at the touched rows, and leave all others with their moments.
func TestSparseUpdates(t *testing.T) {
	for _, optimizer := range []string{"adam", "adamw", "sgd"} {
		random := rand.New(rand.NewPCG(1, 2))
		got := table(optimizer)
		rows := make([]float64, len(got.rows))
		for i, x := range got.rows {
			rows[i] = float64(x)
		}
		m, v := make([]float64, len(rows)), make([]float64, len(rows))
		for update := range 6 {
			steps, rate := float64(update+1), 0.03
			all := groups(random, 3)
			gradient, touched := make([]float64, len(rows)), map[uint32]bool{}
			got.Begin()
			for i := range all {
				add(got, &all[i])
				for k, of := range all[i].vertices {
					touched[of] = true
					for c := range columns {
						gradient[int(of)*columns+c] += float64(all[i].gradient[k*columns+c])
					}
				}
			}
			before := slices.Clone(got.rows)
			got.Update(rate, uint64(steps))
			for i := range rows {
				if !touched[uint32(i/columns)] {
					if got.rows[i] != before[i] {
						t.Fatalf("%s: vertex %d moves, which is not touched", optimizer, i/columns)
					}
					continue
				}
				if optimizer == "sgd" {
					rows[i] -= rate * gradient[i]
					continue
				}
				m[i] = 0.9*m[i] + 0.1*gradient[i]
				v[i] = 0.999*v[i] + 0.001*gradient[i]*gradient[i]
				rows[i] -= rate * (m[i] / (1 - math.Pow(0.9, steps))) / (math.Sqrt(v[i]/(1-math.Pow(0.999, steps))) + 1e-8)
			}
			for i := range rows {
				if math.Abs(rows[i]-float64(got.rows[i])) > 2e-5 {
					t.Fatalf("%s, update %d: number %d is %g in place of %g", optimizer, update, i, got.rows[i], rows[i])
				}
			}
		}
		if !got.Sound() {
			t.Error("it takes its rows for not finite")
		}
	}
}

// The sum does not depend on who has computed which grain: it comes to the same bits.
func TestGrainsAreAddedUpInTheirOrder(t *testing.T) {
	const grains = 6
	one := table("adam")
	random := rand.New(rand.NewPCG(5, 6))
	for update := range uint64(3) {
		all := groups(random, grains)
		one.Begin()
		for i := range all {
			add(one, &all[i])
		}
		one.Update(0.01, update+1)
	}
	for _, owners := range [][]int{{0, 1, 0, 1, 0, 1}, {1, 1, 0, 0, 0, 1}, {4, 0, 3, 1, 4, 1}} {
		nodes := slices.Max(owners) + 1
		tables, err := shared(t, nodes, nil, func(node int, tab *Table, share func(step uint32) error) error {
			random := rand.New(rand.NewPCG(5, 6))
			for update := range uint32(3) {
				all := groups(random, grains)
				tab.Begin()
				for i := range all {
					if owners[i] == node {
						add(tab, &all[i])
					}
				}
				if err := share(update); err != nil {
					return err
				}
				tab.Update(0.01, uint64(update)+1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for node, tab := range tables {
			if !slices.Equal(tab.rows, one.rows) || !slices.Equal(tab.moments[0].rows, one.moments[0].rows) || !slices.Equal(tab.moments[1].rows, one.moments[1].rows) {
				t.Errorf("node %d of %d has other rows than one node", node, nodes)
			}
		}
	}
}

// shared runs something on the tables of so many nodes at once. trouble may change a net.
func shared(t *testing.T, nodes int, trouble func(*loopback.Net), do func(node int, tab *Table, share func(step uint32) error) error) ([]*Table, error) {
	t.Helper()
	net := loopback.New(nodes)
	if trouble != nil {
		trouble(net)
	}
	var tables []*Table
	errs := make([]error, nodes)
	var running sync.WaitGroup
	w := peer.Work{}
	for i := range nodes {
		w.Nodes = append(w.Nodes, fmt.Sprintf("n%d", i))
		tables = append(tables, table("adam"))
	}
	for i := range nodes {
		w := w
		w.Self = i
		x := exchange.New(net.Node(i), w)
		net.Node(i).Open()
		running.Go(func() {
			var tally peer.Tally
			errs[i] = do(i, tables[i], func(step uint32) error {
				if err := tables[i].Share(t.Context(), x, w, exchange.Tag{Epoch: 1, Step: step}, &tally); err != nil {
					return err
				}
				// As nodes that add up weights' gradients do, each waits for all.
				_, err := x.Gather(t.Context(), exchange.Tag{Epoch: 1, Step: step}, nil, &tally)
				return err
			})
		})
	}
	running.Wait()
	return tables, errors.Join(errs...)
}

// Messages that are none are refused, with what is wrong.
func TestPartsThatAreNone(t *testing.T) {
	tab := table("adam")
	for want, message := range map[string][]uint32{
		"cut short":             {7},
		"a part of 2 rows has":  {0, 2, 1, 2, 3},
		"there is no vertex 40": {0, 1, 40, 0, 0, 0, 0, 0},
		"more than 8 parts":     make([]uint32, 2*9),
		"a part of 41 rows":     append([]uint32{0, 41}, make([]uint32, 41*(1+columns))...),
	} {
		if _, err := tab.partsOf(nil, message, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", message[:1], err)
		}
	}
	if parts, err := tab.partsOf(nil, []uint32{3, 1, 39, 0, 0, 0, 0, 0, 4, 0}, 0); err != nil || len(parts) != 2 || parts[0].grain != 3 || parts[1].grain != 4 {
		t.Errorf("%v, %v", parts, err)
	}
}

// A node that can't be reached ends the step, and the first error is the one that is returned.
func TestPartsThatDoNotCome(t *testing.T) {
	gone := errors.New("gone")
	_, err := shared(t, 3, func(net *loopback.Net) {
		net.Trouble = func(_ context.Context, _, to int, q peer.Query) error {
			if to == 1 && q.Kind == peer.Gradient {
				return gone
			}
			return nil
		}
	}, func(node int, tab *Table, share func(uint32) error) error {
		if node == 1 {
			return nil
		}
		tab.Begin()
		if err := share(0); !errors.Is(err, gone) {
			return errors.Join(fmt.Errorf("node %d ends otherwise", node), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzParts takes messages apart.
func FuzzParts(f *testing.F) {
	f.Add(plain.Bytes([]uint32{3, 1, 39, 0, 0, 0, 0, 0, 4, 0}))
	f.Add(plain.Bytes([]uint32{0, 2, 1, 2, 3}))
	f.Add(plain.Bytes([]uint32{0, math.MaxUint32, 1}))
	tab := table("sgd")
	f.Fuzz(func(t *testing.T, b []byte) {
		words := slices.Clone(plain.Numbers[uint32](b[:len(b)/4*4]))
		parts, err := tab.partsOf(nil, words, 0)
		if err != nil {
			return
		}
		n := 0
		for _, p := range parts {
			n += head + len(p.vertices)*(1+columns)
			if len(p.gradient) != columns*len(p.vertices) || len(p.vertices) > 0 && slices.Max(p.vertices) >= vertices {
				t.Fatalf("%d vertices, %d numbers", len(p.vertices), len(p.gradient))
			}
		}
		if n != len(words) {
			t.Fatalf("parts of %d words of %d", n, len(words))
		}
	})
}

// A table goes on from a file to the same bits.
func TestATableIsKept(t *testing.T) {
	learn := func(tab *Table, random *rand.Rand, from, to uint64) {
		for update := from; update < to; update++ {
			tab.Begin()
			for _, g := range groups(random, 2) {
				add(tab, &g)
			}
			tab.Update(0.02, update+1)
			if update == 1 {
				tab.KeepBest()
			}
		}
	}
	whole, half := table("adam"), table("adam")
	learn(whole, rand.New(rand.NewPCG(7, 8)), 0, 6)
	random := rand.New(rand.NewPCG(7, 8))
	learn(half, random, 0, 3)
	var file bytes.Buffer
	if err := checkpoint.Write(&file, half.Sections(0), map[string]string{}); err != nil {
		t.Fatal(err)
	}
	if most := half.MaxBytes(); uint64(file.Len()) > most+4096 {
		t.Errorf("a file of %d bytes has %d at most", file.Len(), most)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again := table("adam")
	rows, err := again.Read(f, 0)
	if err != nil {
		t.Fatal(err)
	}
	again.Adopt(rows, 0)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.best, half.best) || len(again.best) == 0 {
		t.Error("the best rows are not those that were kept")
	}
	learn(again, random, 3, 6)
	if !slices.Equal(again.rows, whole.rows) {
		t.Error("it goes on to other rows")
	}
	other := New(Options{Vertices: vertices + 1, Columns: columns, Optimizer: nn.OptimizerSpec{Kind: "adam"}})
	if f, err = checkpoint.Open(path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := other.Read(f, 0); err == nil || !strings.Contains(err.Error(), "of another model") {
		t.Errorf("a table of other vertices is read: %v", err)
	}
}

// Numbers that are not finite are found when they come to be.
func TestRowsThatAreNotFinite(t *testing.T) {
	tab := table("sgd")
	tab.Begin()
	g := group{vertices: []uint32{4}, gradient: []float32{1, 2, 3, math.MaxFloat32, 5}}
	add(tab, &g)
	tab.Update(1e30, 1)
	if tab.Sound() {
		t.Error("a row is infinite, and taken for sound")
	}
}

// Steps allocate nothing once their memory has grown.
func TestStepsAllocateNothing(t *testing.T) {
	tab := table("adam")
	all := groups(rand.New(rand.NewPCG(9, 1)), 3)
	d := cpu.New(1)
	update := uint64(0)
	one := func() {
		tab.Begin()
		for i := range all {
			g := &all[i]
			tab.Add(d, g.grain, g.vertices, tensor.OverF32(len(g.vertices), columns, g.gradient))
		}
		update++
		tab.Update(0.01, update)
	}
	for range 4 {
		one()
	}
	if n := testing.AllocsPerRun(20, one); n > 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

// A run without a table calls the same methods.
func TestNoTable(t *testing.T) {
	var none *Table
	none.Begin()
	none.Update(1, 1)
	none.KeepBest()
	if none.Numbers() != nil || !none.Sound() || none.StepBytes(10, 2) != 0 || Bytes(10, 0, 0, nn.OptimizerSpec{Kind: "adam"}) != 0 {
		t.Error("no table has numbers")
	}
	if got := Bytes(10, 3, 4, nn.OptimizerSpec{Kind: "adam"}); got != 10*(4*3+4*4*4+4+1) {
		t.Errorf("a table takes %d bytes", got)
	}
}
