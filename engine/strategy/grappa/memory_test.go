package grappa_test

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategy/grappa"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// What views take is told before the first step, within a tenth.
func TestForecastOfScenes(t *testing.T) {
	shards := traintest.Communities(t, 6000)
	for name, g := range map[string][]string{
		"halo": {"period=1", "swept=1"}, "strict": {"period=1", "swept=1", "loader=strict"}, "sampled": {"period=1", "swept=1", "loader=halo-sampled", "cap=200"},
	} {
		r := traintest.Short("sage")
		r.Sharing, r.Epochs = apart(g...), 20
		m := traintest.NewMesh(3, []int{0, 0, 1, 1, 2})
		all := m.Start(t, r, shards, isolation(train.Options{Threads: 1}))
		err := m.Each(func(node int) error {
			n := traintest.IsolatedOf(all[node])
			reports, most := n.Forecast(), uint64(0)
			for super := range n.Schedule.Slots() {
				s, err := n.BringView(context.Background(), super)
				if err != nil {
					return err
				}
				most = max(most, s.Bytes())
			}
			if is := n.Views()*most + n.Fixed(); reports > is*11/10 || reports < is*9/10 {
				t.Errorf("%s, node %d: %d bytes are told, and it takes %d", name, node, reports, is)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bounded are the options of a mesh in which --memory of one node leaves room for a part of
// the halo of its groups: those that share the job with it have room for all of it.
func bounded(t *testing.T, r recipe.Recipe, shards []*graph.Shard, owners []int, tight int) func(node int) train.Options {
	t.Helper()
	all := traintest.NewMesh(3, owners).Start(t, r, shards, isolation(train.Options{Threads: 1, Dir: t.TempDir()}))
	n := traintest.IsolatedOf(all[tight])
	need, err := all[tight].Run.Forecast(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bare := uint64(0)
	for super := range n.Schedule.Slots() {
		bare = max(bare, n.Bare(n.Load(super)))
	}
	taken := need.OnHost() - n.Forecast()
	memory := taken + (3*(n.Views()*bare+n.Fixed())+n.Forecast())/4
	return func(node int) train.Options {
		o := isolation(train.Options{Threads: 1, Dataset: "d"})
		if node == tight {
			o.Memory = memory
		}
		return o
	}
}

// widened gives vertices so many features, so that rows are what takes memory.
func widened(shards []*graph.Shard, columns int) []*graph.Shard {
	for _, s := range shards {
		wide := make([]float32, columns*s.Vertices)
		for v := range s.Vertices {
			copy(wide[columns*v:], s.Dense[s.Features*v:][:s.Features])
		}
		s.Dense, s.Features = wide, columns
	}
	return shards
}

// listed gives vertices their features as sparse rows, which stay in memory where a run has a
// folder.
func listed(shards []*graph.Shard) []*graph.Shard {
	for _, s := range shards {
		rows := &graph.SparseRows{Indptr: []int64{0}}
		for v := range s.Vertices {
			for c, x := range s.Dense[s.Features*v:][:s.Features] {
				rows.Columns, rows.Values = append(rows.Columns, int32(c)), append(rows.Values, x+1)
			}
			rows.Indptr = append(rows.Indptr, int64(len(rows.Columns)))
		}
		s.Dense, s.Sparse = nil, rows
	}
	return shards
}

// Where --memory of one node is too small for its halo, groups on all nodes keep as many
// rows as that has room for: what is learnt is what a cap of so many rows teaches, and goes
// on so where there is room for more.
func TestMemoryBoundsTheHalo(t *testing.T) {
	shards := listed(widened(traintest.Communities(t, 6000), 128))
	owners := []int{0, 0, 1, 1, 2}
	r := traintest.Short("sage")
	r.Sharing, r.Epochs = apart("period=2", "groups=3", "swept=1"), 4
	options := bounded(t, r, shards, owners, 1)
	folders := func() []string { return []string{t.TempDir(), t.TempDir(), t.TempDir()} }
	folder := folders()
	run := func(r recipe.Recipe, options func(node int) train.Options, dir []string, most int64) (reports [3][]trained.Epoch, notes [3]string, err error) {
		m := traintest.NewMesh(3, owners)
		ctx := t.Context()
		if most > 0 {
			ctx = traintest.CancelAfter(t, m, most)
		}
		err = m.Each(func(node int) error {
			held, o := m.Of(node, shards, options(node))
			o.Announce = func(f train.Forecast) {
				if notes[node] = strings.Join(f.Notes, "\n"); o.Memory > 0 && f.Arenas > o.Memory {
					t.Errorf("%d bytes are announced, and %d are allowed", f.Arenas, o.Memory)
				}
			}
			o.Report = func(e trained.Epoch) { reports[node] = append(reports[node], e) }
			if dir != nil {
				o.Dir, o.Resume, o.Interval = dir[node], true, time.Nanosecond
			}
			_, err := train.Run(ctx, r, held, o)
			return err
		})
		return reports, notes, err
	}
	reports, notes, err := run(r, options, folders(), 0)
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`groups keep (\d+) rows of their halo at most, since {agent.memory} on node n1 leaves`).FindStringSubmatch(notes[0])
	if said == nil || !strings.Contains(notes[1], said[0]) || !strings.Contains(notes[2], said[0]) {
		t.Fatalf("%q", notes)
	}
	free := func(int) train.Options { return isolation(train.Options{Threads: 1, Dataset: "d"}) }
	capped := r
	capped.Sharing = apart("period=2", "groups=3", "swept=1", "loader=halo-sampled", "cap="+said[1])
	want, _, err := run(capped, free, nil, 0)
	if err != nil || traintest.Hashes(reports[2]) != traintest.Hashes(want[0]) {
		t.Errorf("%v: with a cap of %s rows:\n%s\nand where memory has no room for more\n%s", err, said[1], traintest.Hashes(want[0]), traintest.Hashes(reports[2]))
	}
	if whole, _, err := run(r, free, nil, 0); err != nil || traintest.Hashes(whole[0]) == traintest.Hashes(want[0]) {
		t.Errorf("%v: a cap of %s rows leaves nothing out", err, said[1])
	}
	if _, _, err := run(r, options, folder, 250); !errors.Is(err, traintest.ErrEnough) {
		t.Fatal(err)
	}
	rest, notes, err := run(r, free, folder, 0)
	if err != nil || len(rest[0]) == 0 || !strings.Contains(notes[2], "groups keep "+said[1]+" rows of their halo at most, as since the job began") {
		t.Fatalf("%v, %q", err, notes)
	}
	if got := traintest.Hashes(rest[0]); got != traintest.Hashes(reports[0][4-len(rest[0]):]) {
		t.Errorf("it went on to\n%s\nin place of\n%s", got, traintest.Hashes(reports[0]))
	}
}

// Where the same bits are promised on any nodes, the halo is not cut: it is refused before
// its rows are brought, with what would fit. And where even what has no halo is too much,
// that is said.
func TestTooLittleMemoryForTheHalo(t *testing.T) {
	shards := widened(traintest.Communities(t, 6000), 128)
	owners := []int{0, 0, 1, 1, 2}
	r := traintest.Short("sage")
	r.Sharing = apart("swept=1")
	try := func(options func(node int) train.Options) error {
		m := traintest.NewMesh(3, owners)
		return m.Together(t, func(ctx context.Context, node int) error {
			held, o := m.Of(node, shards, options(node))
			_, err := train.Run(ctx, r, held, o)
			return err
		})
	}
	one := traintest.NewMesh(3, owners).Start(t, r, shards, isolation(train.Options{Threads: 1}))[1]
	memory := budget.Program + one.Run.WeightBytes() + one.Run.Data.Features.Bytes() + traintest.IsolatedOf(one).Forecast()/2
	r.Sharing.Deterministic = true
	err := try(func(int) train.Options { return isolation(train.Options{Threads: 1, Memory: memory}) })
	for _, want := range []string{"what the groups of this node see of other nodes' shards takes", "take {grappa.loader=halo-sampled} and {grappa.cap="} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
	r.Sharing.Deterministic = false
	err = try(func(int) train.Options { return isolation(train.Options{Threads: 1, Memory: budget.Program + 900<<10}) })
	if want := "even if its groups see next to nothing of the halo, and has " + budget.Format(budget.Program+900<<10) + ": take fewer {grappa.swept}, take a smaller {batch}"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, and not %q", err, want)
	}
}

// What is told is what the heap grows by where each node trains in the largest of its
// views and has one like it for the next: edges, contexts and rows of features.
func TestForecastIsWhatTheHeapHolds(t *testing.T) {
	shards := widened(traintest.Communities(t, 20_000), 64)
	for name, g := range map[string][]string{
		"halo": {"period=1", "swept=1"}, "strict": {"period=1", "swept=1", "loader=strict"}, "sampled": {"period=1", "swept=1", "loader=halo-sampled", "cap=1000"},
	} {
		r := traintest.Short("sage")
		r.Sharing, r.Epochs = apart(g...), 20
		all := traintest.NewMesh(3, []int{0, 0, 1, 1, 2}).Start(t, r, shards, isolation(train.Options{Threads: 1}))
		reports, largest := uint64(0), [3]int{}
		for node, l := range all {
			n := traintest.IsolatedOf(l)
			reports += n.Forecast() - n.Fixed() // which are there in both cases
			most := uint64(0)
			for super := range n.Schedule.Slots() {
				if bytes := mustBring(t, n, super).Bytes(); bytes > most {
					most, largest[node] = bytes, super
				}
			}
			n.Now = nil
		}
		before := living()
		var there []*grappa.View
		for node, l := range all {
			for range traintest.IsolatedOf(l).Views() {
				there = append(there, mustBring(t, traintest.IsolatedOf(l), largest[node]))
			}
		}
		if is := living() - before; reports > is*11/10 || reports < is*9/10 {
			t.Errorf("%s: %d bytes are told, and the heap grows by %d", name, reports, is)
		}
		for node, l := range all {
			traintest.IsolatedOf(l).Now = there[2*node]
		}
	}
}

// Where a run has a folder, what its groups see of others' shards lies in files there: all of
// it but what finds edges and rows, and they learn the same. The files have no names, and are
// gone with the run.
func TestWhatGroupsSeeLiesInFiles(t *testing.T) {
	shards := widened(traintest.Communities(t, 6000), 64)
	for name, g := range map[string][]string{
		"halo": {"period=1", "swept=1"}, "strict": {"period=1", "swept=1", "loader=strict"}, "sampled": {"period=1", "swept=1", "loader=halo-sampled", "cap=1000"},
	} {
		r := traintest.Short("sage")
		r.Sharing, r.Epochs = apart(append(g, "groups=5")...), 3
		hash := ""
		for _, dir := range []string{"", t.TempDir()} {
			before := living()
			all := traintest.NewMesh(3, []int{0, 0, 1, 1, 2}).Start(t, r, shards, isolation(train.Options{Threads: 1, Dir: dir}))
			for node, l := range all {
				n := traintest.IsolatedOf(l)
				s := mustBring(t, n, 1)
				switch index := uint64(20_000); { // sets and what numbers them
				case dir == "" && (s.Filed() != 0 || s.Bytes() < 200_000):
					t.Errorf("%s, node %d: %d bytes are in memory and %d in files", name, node, s.Bytes(), s.Filed())
				case dir != "" && (s.Filed() < 200_000 || s.Bytes() > index || n.Forecast()-n.Fixed() > 2*index):
					t.Errorf("%s, node %d: %d bytes are in memory and %d in files, and %d are forecast", name, node, s.Bytes(), s.Filed(), n.Forecast()-n.Fixed())
				}
				if err := s.Close(); err != nil || s.Filed() != 0 {
					t.Errorf("%d bytes are left: %v", s.Filed(), err)
				}
			}
			if is := living() - before; dir != "" && is > 4<<20 {
				t.Errorf("%s: the heap grows by %d bytes", name, is)
			}
			runtime.KeepAlive(all)
			_, reports, err := traintest.NewMesh(3, []int{0, 0, 1, 1, 2}).Run(t.Context(), r, shards, isolation(train.Options{Threads: 1, Dataset: "d"}), func(node int) string {
				if dir == "" {
					return ""
				}
				return t.TempDir()
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := traintest.Hashes(reports[0]); hash != "" && got != hash {
				t.Errorf("%s: in files\n%s\nand in memory\n%s", name, got, hash)
			} else {
				hash = got
			}
		}
	}
}

func mustBring(t *testing.T, n *grappa.Method, super int) *grappa.View {
	t.Helper()
	s, err := n.BringView(t.Context(), super)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// living is how much of the heap is in use.
func living() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
