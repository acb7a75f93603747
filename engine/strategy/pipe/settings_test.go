package pipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// both are the declarations of a program with these strategies alone.
var both = strategy.Declarations{Pipe.Declaration, Graph.Declaration}

// promised are settings that promise the same bits on any number of nodes.
func promised(s strategy.Settings) strategy.Settings {
	s.Deterministic = true
	return s
}

// unusual are values that differ from the defaults, by name without "pipe.".
var unusual = map[string]string{
	"stages": "3", "ways": "3", "chunks": "3", "halo": "skip", "share": "3", "age": "3", "shuffle": "off", "period": "3",
	"histories": "zeros", "gradients": "kept", "compensate": "off", "recompute": "off", "first": "reader",
}

func TestDefaults(t *testing.T) {
	want := Settings{
		Halo: Exact, Share: 10, Age: 1, Shuffle: true, Period: 23, Histories: Made, Gradients: "dropped", Compensate: true, Recompute: "auto", First: "owner",
	}
	if got := Of(&strategy.Settings{Strategy: Name}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want.Graph, want.Deterministic = true, true
	if got := Of(&strategy.Settings{Strategy: GraphName, Deterministic: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Settings{
		Stages: 3, Ways: 3, Chunks: 3, Halo: Skip, Share: 3, Age: 3, Period: 3, Histories: Zeros, Gradients: "kept", Recompute: "off", First: "reader",
	}
	s := strategy.Settings{Strategy: Name, Values: map[string]string{}}
	for name, value := range unusual {
		s.Values["pipe."+name] = value
	}
	if got := Of(&s); got != want || len(Pipe.Keys()) != len(unusual) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Users have these keys, in this order. Graph has what of this is of use without
// histories.
func TestKeys(t *testing.T) {
	want := []string{
		"pipe.stages nodes|auto|N nodes: pipe",
		"pipe.ways usual|auto|N usual: pipe, graph",
		"pipe.chunks shards|N shards: pipe",
		"pipe.halo exact|previous-epoch|sampled|skip exact: pipe, graph",
		"pipe.share PERCENT 10: pipe, graph",
		"pipe.age EPOCHS 1: pipe, graph",
		"pipe.shuffle on|off on: pipe",
		"pipe.period EPOCHS 23: pipe",
		"pipe.histories made|left|zeros made: pipe",
		"pipe.gradients dropped|kept dropped: pipe",
		"pipe.compensate on|off on: pipe",
		"pipe.recompute auto|on|off auto: pipe",
		"pipe.first owner|reader owner: pipe, graph",
	}
	var got []string
	for _, k := range both.Keys() {
		if strings.HasPrefix(k.Key, "pipe.") {
			got = append(got, fmt.Sprintf("%s %s %s: %s", k.Key, k.Values, k.Default, k.Applies))
		}
		if k.Help == "" {
			t.Errorf("%s has no words", k.Key)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for key, ok := range map[string]bool{"pipe.ways=2": true, "pipe.halo=sampled": true, "pipe.stages=2": false, "pipe.period=2": false} {
		s := strategy.Given(GraphName, key)
		if err := both.CheckUse(&s, GraphName); (err == nil) != ok {
			t.Errorf("{strategy} graph with %s: %v", key, err)
		}
	}
	s := strategy.Given(strategy.Auto, "pipe.ways=2")
	if err := both.CheckUse(&s, ""); err == nil || !strings.Contains(err.Error(), "{pipe.ways}=2 is for {strategy} pipe or graph, which auto never chooses") {
		t.Error(err)
	}
}

func TestEachValueIsSetAndStored(t *testing.T) {
	for _, k := range Pipe.Keys() {
		for value := range strings.SplitSeq(k.Values, "|") {
			if strings.ToUpper(value) == value {
				value = "3"
			}
			zero := strategy.Settings{Strategy: Name}
			s := zero
			if known, err := both.Set(&s, k.Key, value); !known || err != nil {
				t.Errorf("%s=%s: known %v, %v", k.Key, value, known, err)
			}
			stored := value
			if value == k.Default {
				stored = ""
			}
			if s.Values[k.Key] != stored || (Of(&s) == Of(&zero)) != (stored == "") || reflect.DeepEqual(s, zero) != (stored == "") {
				t.Errorf("%s=%s is stored as %+v, and is %+v", k.Key, value, s, Of(&s))
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var again strategy.Settings
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%s=%s comes back from %s as %+v: %v", k.Key, value, text, again, err)
			}
			if known, err := both.Set(&s, k.Key, k.Default); !known || err != nil || !reflect.DeepEqual(s, zero) {
				t.Errorf("%s=%s after %s leaves %+v: %v", k.Key, k.Default, value, s, err)
			}
		}
	}
}

func TestBadValuesGetASentence(t *testing.T) {
	for given, want := range map[string]string{
		"pipe.stages=many":    "{pipe.stages}=many: it is nodes, auto, or a whole number from 1 to 1048576",
		"pipe.stages=-1":      "it is nodes, auto, or a whole number from 1 to",
		"pipe.ways=0":         "{pipe.ways}=0: it is usual, auto, or a whole number from 1 to",
		"pipe.chunks=-2":      "it is shards, or a whole number from 1 to",
		"pipe.chunks=auto":    "it is shards, or a whole number from 1 to",
		"pipe.halo=old":       "it is one of exact, previous-epoch, sampled, skip",
		"pipe.share=0":        "it is a whole number from 1 to 100, in percent",
		"pipe.share=101":      "{pipe.share}=101: it is a whole number from 1 to 100, in percent",
		"pipe.age=0":          "it is a whole number from 1 to",
		"pipe.period=x":       "it is a whole number from 1 to",
		"pipe.shuffle=yes":    "it is on or off",
		"pipe.histories=old":  "it is one of made, left, zeros",
		"pipe.gradients=old":  "it is one of dropped, kept",
		"pipe.compensate=2":   "it is on or off",
		"pipe.recompute=some": "it is one of auto, on, off",
	} {
		name, value, _ := strings.Cut(given, "=")
		var s strategy.Settings
		known, err := both.Set(&s, name, value)
		if !known || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: known %v, %v", given, known, err)
		}
		if !reflect.DeepEqual(s, strategy.Settings{}) {
			t.Errorf("%s was refused and has set %+v", given, s)
		}
	}
}

func TestWhatCanNotBeTogether(t *testing.T) {
	for name, c := range map[string]struct {
		s    strategy.Settings
		want string // "": nothing is wrong
	}{
		"none":                   {strategy.Settings{}, ""},
		"pipe":                   {promised(strategy.Given(Name, "pipe.stages=3", "pipe.ways=2", "pipe.chunks=12")), ""},
		"few chunks":             {strategy.Given(Name, "pipe.stages=3", "pipe.chunks=2"), "pipe.stages=3, pipe.chunks=2: with fewer chunks than stages"},
		"enough chunks":          {strategy.Given(Name, "pipe.stages=3", "pipe.chunks=3"), ""},
		"many ways":              {strategy.Given(Name, "pipe.ways=3", "pipe.chunks=2"), "pipe.ways=3, pipe.chunks=2: each way has one chunk at least"},
		"not too many ways":      {strategy.Given(Name, "pipe.ways=2", "pipe.chunks=2"), ""},
		"old rows":               {strategy.Given(Name, "pipe.ways=2", "pipe.halo=skip"), "pipe.halo=skip: histories are made of rows of now"},
		"old rows of one way":    {strategy.Given(Name, "pipe.ways=1", "pipe.chunks=1", "pipe.halo=skip"), "pipe.halo=skip: histories are made of rows of now"},
		"old rows without past":  {strategy.Given(Name, "pipe.ways=2", "pipe.chunks=2", "pipe.halo=skip"), ""},
		"old rows of graph":      {strategy.Given(GraphName, "pipe.halo=skip", "pipe.age=3"), ""},
		"a share":                {strategy.Given(GraphName, "pipe.halo=sampled", "pipe.share=3"), ""},
		"a share of what":        {strategy.Given(GraphName, "pipe.share=3"), "pipe.share=3 is for pipe.halo=sampled"},
		"the usual share of":     {strategy.Given(GraphName, "pipe.share=10"), "pipe.share=10 is for pipe.halo=sampled"},
		"an age of what":         {strategy.Given(GraphName, "pipe.age=3"), "pipe.age=3 is for pipe.halo=skip"},
		"the usual age of what":  {strategy.Given(GraphName, "pipe.age=1"), "pipe.age=1 is for pipe.halo=skip"},
		"bits of graph":          {promised(strategy.Given(GraphName)), "choose {pipe.ways}=N"},
		"bits of asked ways":     {promised(strategy.Given(GraphName, "pipe.ways=auto")), "choose {pipe.ways}=N"},
		"bits of ways":           {promised(strategy.Given(GraphName, "pipe.ways=4")), ""},
		"bits of pipe":           {promised(strategy.Given(Name)), ""},
		"edges elsewhere":        {strategy.Given(Name, "topology=replicated"), "topology=replicated: with {strategy} pipe a node has the edges of its part of the graph"},
		"edges beside graph":     {strategy.Given(GraphName, "topology=replicated"), "topology=replicated: with {strategy} graph a node has the edges of its part of the graph"},
		"edges here":             {strategy.Given(Name, "topology=sharded"), ""},
		"edges of another":       {strategy.Given("leap", "topology=sharded"), ""},
		"negative stages":        {strategy.Given(strategy.Single, "pipe.stages=-2"), "{pipe.stages}=-2: it is nodes, auto, or a whole number"},
		"too many stages":        {strategy.Given(Name, "pipe.stages=1025"), "pipe.stages=1025, pipe.ways=0: there are 1024 of each at most"},
		"too many ways":          {strategy.Given("leap", "pipe.ways=1025"), "pipe.stages=0, pipe.ways=1025: there are 1024 of each at most"},
		"most":                   {strategy.Given(Name, "pipe.stages=1024", "pipe.ways=1024"), ""},
		"chunks of another":      {strategy.Given("leap", "pipe.stages=3", "pipe.chunks=2", "pipe.share=3"), ""},
		"stages and ways, asked": {strategy.Given(Name, "pipe.stages=auto", "pipe.ways=auto", "pipe.chunks=1"), ""},
	} {
		err := both.Check(&c.s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestStagesAndNodes(t *testing.T) {
	s := strategy.Given(Name, "pipe.stages=3", "pipe.ways=2")
	if err := both.CheckNodes(&s, 6); err != nil {
		t.Error(err)
	}
	want := "3 stages of 2 ways are work for 6 nodes, and the dataset is on 5: choose fewer with {pipe.stages} and pipe.ways"
	if err := both.CheckNodes(&s, 5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	// Ways of one stage may be more than nodes, as where nodes have gone.
	for _, name := range []string{GraphName, Name} {
		s := strategy.Given(name, "pipe.ways=7")
		if err := both.CheckNodes(&s, 5); err != nil {
			t.Errorf("%s with 7 ways on 5 nodes: %v", name, err)
		}
	}
	asked := strategy.Given(Name, "pipe.stages=auto", "pipe.ways=auto")
	if err := errors.Join(both.Check(&asked), both.CheckNodes(&asked, 1), both.CheckShards(&asked, 1)); err != nil {
		t.Error(err)
	}
	s = strategy.Given(Name, "pipe.stages=6", "pipe.ways=1")
	want = "6 stages of 1 way are work for 6 nodes, and the dataset is on 5: choose fewer with {pipe.stages} and pipe.ways"
	if err := both.CheckNodes(&s, 5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, name := range []string{GraphName, "leap"} { // which have no stages
		s.Strategy = name
		if err := both.CheckNodes(&s, 5); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		s                    strategy.Settings
		stages, ways, chunks int
	}{
		{strategy.Given(Name), 4, 1, 20}, {strategy.Given(Name, "pipe.ways=2"), 2, 2, 20}, {strategy.Given(Name, "pipe.stages=2", "pipe.chunks=5"), 2, 1, 5},
		{strategy.Given(Name, "pipe.stages=auto", "pipe.ways=auto"), 4, 1, 20},
		{strategy.Given(GraphName, "pipe.ways=auto"), 1, 5, 5}, {strategy.Given(GraphName), 1, 5, 5}, {strategy.Given(GraphName, "pipe.ways=2"), 1, 2, 2},
	} {
		p := Of(&c.s)
		if a, b, d := p.StagesOf(5, 4), p.WaysOf(5), p.ChunksOf(5, 20); a != c.stages || b != c.ways || d != c.chunks {
			t.Errorf("%+v: %d stages, %d ways, %d chunks", c.s, a, b, d)
		}
	}
}

func TestChunksAndShards(t *testing.T) {
	s := strategy.Given(Name, "pipe.stages=3", "pipe.ways=2", "pipe.chunks=7")
	if err := both.CheckShards(&s, 7); err != nil {
		t.Error(err)
	}
	want := "the dataset has 6 shards, which can't be 7 chunks, nor as many ways: choose 6 at most with {pipe.chunks} and pipe.ways, or import it with more {dataset.shards}"
	if err := both.CheckShards(&s, 6); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s = strategy.Given(GraphName, "pipe.ways=7")
	if err := both.CheckShards(&s, 6); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if s.Strategy = "leap"; both.CheckShards(&s, 6) != nil {
		t.Error("leap has no ways")
	}
	s = strategy.Given(Name, "pipe.stages=5")
	if err := both.CheckShards(&s, 5); err != nil {
		t.Error(err)
	}
	want = "pipe.stages=5: the dataset has 3 shards, which are the chunks, and with fewer chunks than stages some stages never have any to do: choose 3 stages or fewer, or import it with more {dataset.shards}"
	if err := both.CheckShards(&s, 3); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A run goes on with other stages, and whatever it recomputes, but for nothing else.
func TestWhatIsTheSame(t *testing.T) {
	for _, k := range Pipe.Keys() {
		name := strings.TrimPrefix(k.Key, "pipe.")
		want := name == "stages" || name == "recompute"
		a, b := strategy.Given(Name), strategy.Given(Name, k.Key+"="+unusual[name])
		if got := both.Same(&a, &b); got != want || both.Same(&b, &a) != want {
			t.Errorf("with %s=%s it is the same: %v", k.Key, unusual[name], got)
		}
		b = strategy.Given(Name, k.Key+"="+k.Default)
		if !both.Same(&a, &b) {
			t.Errorf("with %s=%s it is not the same", k.Key, k.Default)
		}
		a, b = strategy.Given("leap"), strategy.Given("centric", k.Key+"="+unusual[name])
		if !both.Same(&a, &b) {
			t.Errorf("of %s=%s nothing is known to others", k.Key, unusual[name])
		}
	}
	for _, other := range []string{GraphName, "leap"} {
		a, b := strategy.Given(Name), strategy.Given(other)
		if both.Same(&a, &b) || both.Same(&b, &a) {
			t.Errorf("pipe is the same as %s", other)
		}
	}
}

func TestSweepsAreRefused(t *testing.T) {
	for _, name := range []string{Name, GraphName} {
		s := strategy.Given(name)
		want := "{sweep}: the strategy " + name + " keeps rows of all layers for one model only: take another {strategy}, or start one job for each model"
		if err := both.CheckSweep(&s, name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := strategy.Given(strategy.Auto, "pipe.ways=2")
	want := "{pipe.ways}=2 is for {strategy} pipe or graph, which trains no sweeps: leave it out, or start one job for each model"
	if err := both.CheckSweep(&s, strategy.Auto); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Graph has one stage, whose activations are kept whatever is said.
func TestWhatIsRecomputed(t *testing.T) {
	for _, c := range []struct {
		name, value      string
		recomputes, free bool
	}{
		{Name, "auto", false, true}, {Name, "on", true, false}, {Name, "off", false, false},
		{GraphName, "auto", false, false}, {GraphName, "on", false, false},
	} {
		s := strategy.Given(c.name, "pipe.recompute="+c.value)
		if p := Of(&s); p.Recomputes() != c.recomputes || p.MayRecompute() != c.free {
			t.Errorf("%s, %s: %v, %v", c.name, c.value, p.Recomputes(), p.MayRecompute())
		}
	}
}

// Chunks leave rows or gradients for later epochs unless histories are made, and
// gradients dropped.
func TestEpochsThatDependOnEarlierOnes(t *testing.T) {
	for value, want := range map[string]bool{
		"pipe.histories=made": false, "pipe.histories=left": true, "pipe.histories=zeros": true, "pipe.gradients=dropped": false, "pipe.gradients=kept": true,
	} {
		s := strategy.Given(Name, value)
		if p := Of(&s); p.Chained() != want {
			t.Errorf("%s: %v", value, p.Chained())
		}
	}
}
