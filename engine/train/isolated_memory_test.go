package train

import (
	"context"
	"errors"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// What scenes take is told before the first step, within a tenth.
func TestForecastOfScenes(t *testing.T) {
	shards := communities(t, 6000)
	for name, g := range map[string]strategy.GrappaSettings{
		"halo": {Period: 1, Swept: 1}, "strict": {Period: 1, Swept: 1, Loader: strategy.Strict}, "sampled": {Period: 1, Swept: 1, Loader: strategy.HaloSampled, Cap: 200},
	} {
		r := short("sage")
		r.Sharing, r.Epochs = apart(g), 20
		m := newMesh(3, []int{0, 0, 1, 1, 2})
		all := m.start(t, r, shards, isolation(Options{Threads: 1}))
		err := m.each(func(node int) error {
			n := all[node].isolated
			told, most := n.forecast(), uint64(0)
			for super := range n.schedule.Slots() {
				s, err := n.bring(context.Background(), super)
				if err != nil {
					return err
				}
				most = max(most, s.bytes())
			}
			if is := n.scenes()*most + n.lacking.Bytes() + n.seen.bytes(); told > is*11/10 || told < is*9/10 {
				t.Errorf("%s, node %d: %d bytes are told, and it takes %d", name, node, told, is)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bounded are the options of a mesh in which --memory of one node leaves room for half of
// the halo of its groups: those that share the job with it have room for all of it.
func bounded(t *testing.T, r Recipe, shards []*graph.Shard, owners []int, tight int) func(node int) Options {
	t.Helper()
	all := newMesh(3, owners).start(t, r, shards, isolation(Options{Threads: 1}))
	n := all[tight].isolated
	need, err := all[tight].foresee(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bare := uint64(0)
	for super := range n.schedule.Slots() {
		bare = max(bare, n.bare(n.load(super)))
	}
	taken := need.others() - n.forecast() + need.pass + need.least
	memory := taken + (n.scenes()*bare+n.lacking.Bytes()+n.seen.bytes()+n.forecast())/2
	return func(node int) Options {
		o := isolation(Options{Threads: 1, Dataset: "d"})
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

// Where --memory of one node is too small for its halo, groups on all nodes keep as many
// rows as that has room for: what is learnt is what a cap of so many rows teaches, and goes
// on so where there is room for more.
func TestMemoryBoundsTheHalo(t *testing.T) {
	shards := widened(communities(t, 6000), 128)
	owners := []int{0, 0, 1, 1, 2}
	r := short("sage")
	r.Sharing, r.Epochs = apart(strategy.GrappaSettings{Period: 2, Groups: 3, Swept: 1}), 4
	options := bounded(t, r, shards, owners, 1)
	folder := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	run := func(r Recipe, options func(node int) Options, dir []string, most int64) (told [3][]Epoch, notes [3]string, err error) {
		m := newMesh(3, owners)
		ctx := t.Context()
		if most > 0 {
			ctx = cancelAfter(t, m, most)
		}
		err = m.each(func(node int) error {
			held, o := m.of(node, shards, options(node))
			o.Announce = func(f Forecast) {
				if notes[node] = strings.Join(f.Notes, "\n"); o.Memory > 0 && f.Arenas > o.Memory {
					t.Errorf("%d bytes are announced, and %d are allowed", f.Arenas, o.Memory)
				}
			}
			o.Report = func(e Epoch) { told[node] = append(told[node], e) }
			if dir != nil {
				o.Dir, o.Resume, o.Interval = dir[node], true, time.Nanosecond
			}
			_, err := Run(ctx, r, held, o)
			return err
		})
		return told, notes, err
	}
	told, notes, err := run(r, options, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`groups keep (\d+) rows of their halo at most, since --memory on node n1 leaves`).FindStringSubmatch(notes[0])
	if said == nil || !strings.Contains(notes[1], said[0]) || !strings.Contains(notes[2], said[0]) {
		t.Fatalf("%q", notes)
	}
	rows, err := strconv.Atoi(said[1])
	if err != nil {
		t.Fatal(err)
	}
	free := func(int) Options { return isolation(Options{Threads: 1, Dataset: "d"}) }
	capped := r
	capped.Sharing = apart(strategy.GrappaSettings{Period: 2, Groups: 3, Swept: 1, Loader: strategy.HaloSampled, Cap: rows})
	want, _, err := run(capped, free, nil, 0)
	if err != nil || hashes(told[2]) != hashes(want[0]) {
		t.Errorf("%v: with a cap of %d rows:\n%s\nand where memory has no room for more\n%s", err, rows, hashes(want[0]), hashes(told[2]))
	}
	if whole, _, err := run(r, free, nil, 0); err != nil || hashes(whole[0]) == hashes(want[0]) {
		t.Errorf("%v: a cap of %d rows leaves nothing out", err, rows)
	}
	if _, _, err := run(r, options, folder, 250); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	rest, notes, err := run(r, free, folder, 0)
	if err != nil || len(rest[0]) == 0 || !strings.Contains(notes[2], "groups keep "+said[1]+" rows of their halo at most, as since the job began") {
		t.Fatalf("%v, %q", err, notes)
	}
	if got := hashes(rest[0]); got != hashes(told[0][4-len(rest[0]):]) {
		t.Errorf("it went on to\n%s\nin place of\n%s", got, hashes(told[0]))
	}
}

// Where the same bits are promised on any nodes, the halo is not cut: it is refused before
// its rows are brought, with what would fit. And where even what has no halo is too much,
// that is said.
func TestTooLittleMemoryForTheHalo(t *testing.T) {
	shards := widened(communities(t, 6000), 128)
	owners := []int{0, 0, 1, 1, 2}
	r := short("sage")
	r.Sharing = apart(strategy.GrappaSettings{Swept: 1})
	try := func(options func(node int) Options) error {
		m := newMesh(3, owners)
		return m.together(t, func(ctx context.Context, node int) error {
			held, o := m.of(node, shards, options(node))
			_, err := Run(ctx, r, held, o)
			return err
		})
	}
	one := newMesh(3, owners).start(t, r, shards, isolation(Options{Threads: 1}))[1]
	memory := atHome + one.weightBytes() + one.data.features.Bytes() + one.isolated.forecast()/2
	r.Sharing.Deterministic = true
	err := try(func(int) Options { return isolation(Options{Threads: 1, Memory: memory}) })
	for _, want := range []string{"what the groups of this node see of other nodes' shards takes", "take --set grappa.loader=halo-sampled --set grappa.cap="} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
	r.Sharing.Deterministic = false
	err = try(func(int) Options { return isolation(Options{Threads: 1, Memory: atHome + 900<<10}) })
	if want := "even if its groups see nothing of the halo, and has 48.9 MiB: take fewer --set grappa.swept, a smaller --batch"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, and not %q", err, want)
	}
}

// What is told is what the heap grows by where each node trains in the largest of its
// scenes and has one like it for the next: edges, contexts and rows of features.
func TestForecastIsWhatTheHeapHolds(t *testing.T) {
	shards := widened(communities(t, 20_000), 64)
	for name, g := range map[string]strategy.GrappaSettings{
		"halo": {Period: 1, Swept: 1}, "strict": {Period: 1, Swept: 1, Loader: strategy.Strict}, "sampled": {Period: 1, Swept: 1, Loader: strategy.HaloSampled, Cap: 1000},
	} {
		r := short("sage")
		r.Sharing, r.Epochs = apart(g), 20
		all := newMesh(3, []int{0, 0, 1, 1, 2}).start(t, r, shards, isolation(Options{Threads: 1}))
		told, largest := uint64(0), [3]int{}
		for node, l := range all {
			n := l.isolated
			told += n.forecast() - n.lacking.Bytes() - n.seen.bytes() // which are there in both cases
			most := uint64(0)
			for super := range n.schedule.Slots() {
				if bytes := mustBring(t, n, super).bytes(); bytes > most {
					most, largest[node] = bytes, super
				}
			}
			n.now = nil
		}
		before := living()
		var there []*scene
		for node, l := range all {
			for range l.isolated.scenes() {
				there = append(there, mustBring(t, l.isolated, largest[node]))
			}
		}
		if is := living() - before; told > is*11/10 || told < is*9/10 {
			t.Errorf("%s: %d bytes are told, and the heap grows by %d", name, told, is)
		}
		for node, l := range all {
			l.isolated.now = there[2*node]
		}
	}
}

func mustBring(t *testing.T, n *isolated, super int) *scene {
	t.Helper()
	s, err := n.bring(t.Context(), super)
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
