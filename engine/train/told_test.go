package train

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

func TestSettingsOfSharing(t *testing.T) {
	r := DefaultRecipe("gcn")
	if err := errors.Join(r.Set("leap.mode", "migrate"), r.Set("topology", "sharded")); err != nil || r.Sharing.Leap.Mode != "migrate" || r.Sharing.Topology != "sharded" {
		t.Errorf("%+v, %v", r.Sharing, err)
	}
	if err := r.Set("leap.mode", "fly"); err == nil || !strings.Contains(err.Error(), "--set leap.mode=fly: it is one of") {
		t.Error(err)
	}
	for _, k := range strategy.Keys() {
		if !slices.ContainsFunc(Settings(), func(o nn.Option) bool { return o.Key == k.Key && o.Applies == k.Applies && o.Help == k.Help }) {
			t.Errorf("%s is not listed", k.Key)
		}
	}
	r.Sharing.Strategy = "cleverer"
	if err := r.Check(Describe(communities(t, 600))); err == nil || !strings.Contains(err.Error(), "cleverer") {
		t.Error(err)
	}
}

// How nodes share a job may change while it goes on, but not how gradients add up.
func TestSharingMayChangeWhileAJobGoesOn(t *testing.T) {
	was, now := small("gcn"), small("gcn")
	now.Sharing = strategy.Settings{Strategy: strategy.Leap, Topology: "sharded", Leap: strategy.LeapSettings{Mode: "migrate", Merge: "2"}}
	if err := sameRecipe(now, was); err != nil {
		t.Error(err)
	}
	now.Sharing.Deterministic = true
	if err := sameRecipe(now, was); err == nil || !strings.Contains(err.Error(), "another sharing") {
		t.Error(err)
	}
}

// What a pipeline has learnt depends on what it saw of other chunks, and not on where
// its stages are.
func TestPipelinesMayNotChangeWhatTheyLearn(t *testing.T) {
	recipe := func(s string, p strategy.PipeSettings) Recipe {
		r := small("gcn")
		r.Sharing = strategy.Settings{Strategy: s, Pipe: p}
		return r
	}
	was := strategy.PipeSettings{Stages: 2, Ways: 2, Chunks: 4, Period: 5}
	with := func(change func(*strategy.PipeSettings)) strategy.PipeSettings {
		p := was
		change(&p)
		return p
	}
	if err := sameRecipe(recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Stages, p.Keep = 0, true })), recipe(strategy.Pipe, was)); err != nil {
		t.Error(err)
	}
	for name, now := range map[string]Recipe{
		"period":     recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Period = 6 })),
		"chunks":     recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Chunks = 6 })),
		"ways":       recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Ways = 1 })),
		"halo":       recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Halo = strategy.RowsSkip })),
		"shuffle":    recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Ordered = true })),
		"compensate": recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Single = true })),
		"histories":  recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.Histories = strategy.HistoriesLeft })),
		"gradients":  recipe(strategy.Pipe, with(func(p *strategy.PipeSettings) { p.KeepGradients = true })),
		"graph":      recipe(strategy.Graph, was),
		"leap":       recipe(strategy.Leap, was),
	} {
		if err := sameRecipe(now, recipe(strategy.Pipe, was)); err == nil || !strings.Contains(err.Error(), "another sharing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A checkpoint that stands behind others is that of a node which was not the furthest:
// what it knows of itself stays.
func TestTheFurthestIsGoneOnFrom(t *testing.T) {
	tr := &trainer{shared: &shared{work: strategy.Work{Nodes: []string{"a", "b", "c"}}}}
	at := func(epoch, step uint64) greeting { return greeting{Have: true, Epoch: epoch, Step: step} }
	for _, c := range []struct {
		all  []greeting
		want int
	}{
		{[]greeting{{}, {}, {}}, -1},
		{[]greeting{{}, at(1, 3), at(1, 3)}, 1},
		{[]greeting{at(2, 0), at(1, 9), {}}, 0},
		{[]greeting{at(1, 8), at(1, 9), {Damaged: true}}, 1},
	} {
		if got, err := tr.furthest(c.all); got != c.want || err != nil {
			t.Errorf("of %+v it is %d, %v", c.all, got, err)
		}
	}
	if _, err := tr.furthest([]greeting{{}, {Damaged: true}, {}}); err == nil || !strings.Contains(err.Error(), "node b") {
		t.Error(err)
	}
}

// FuzzTold reads what nodes tell each other, which may be anything.
func FuzzTold(f *testing.F) {
	for _, v := range []any{&greeting{Wire: wire, Have: true, Epoch: 3}, &share{Seconds: 1, Rows: 5}, &share{Seconds: math.NaN()}} {
		b, err := binary.Append(nil, binary.LittleEndian, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var g greeting
		if err := g.read(b); err == nil {
			if again, err := binary.Append(nil, binary.LittleEndian, &g); err != nil || g.Wire != wire || len(again) != len(b) || g.Tuning.tuning().Slots < 0 {
				t.Errorf("%v, %+v", err, g)
			}
		}
		var h share
		if err := h.read(b); err == nil && (h.Seconds < 0 || math.IsNaN(h.Seconds) || len(b) != binary.Size(&h)) {
			t.Errorf("%+v", h)
		}
	})
}

// FuzzPiece asks for pieces of a checkpoint as anybody may.
func FuzzPiece(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, CheckpointFile), []byte("all that there is"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(0), uint64(17), []byte(nil))
	f.Add(uint64(4), uint64(4), []byte(nil))
	f.Add(uint64(math.MaxUint64), uint64(1), []byte(nil))
	f.Add(uint64(0), uint64(math.MaxUint64), []byte(nil))
	f.Add(uint64(0), uint64(1), []byte{1})
	f.Fuzz(func(t *testing.T, at, n uint64, more []byte) {
		body := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, at), n)
		b, err := readPiece(dir, strategy.Query{Body: append(body, more...)})
		if inside := len(more) == 0 && n > 0 && n <= 17 && at <= 17-n; (err == nil) != inside || inside && string(b) != "all that there is"[at:at+n] {
			t.Errorf("%d bytes from %d on are %q, %v", n, at, b, err)
		}
		if err != nil && !errors.Is(err, strategy.ErrRefused) {
			t.Error(err)
		}
	})
}
