package strategy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEachValueIsSetAndTold(t *testing.T) {
	var zero Settings
	for _, k := range Keys() {
		if got, known := zero.Get(k.Key); !known || got != k.Default {
			t.Errorf("%s is %q by itself, and its default %q", k.Key, got, k.Default)
		}
		if k.Help == "" || k.Applies == "" {
			t.Errorf("%s has no words", k.Key)
		}
		for value := range strings.SplitSeq(k.Values, "|") {
			if strings.ToUpper(value) == value {
				if value = "3"; k.Key == "grappa.shrink" {
					value = "0.5"
				}
			}
			var s Settings
			if known, err := s.Set(k.Key, value); !known || err != nil {
				t.Errorf("%s=%s: known %v, %v", k.Key, value, known, err)
			}
			if got, _ := s.Get(k.Key); got != value {
				t.Errorf("%s=%s is told as %s", k.Key, value, got)
			}
			if (s == zero) != (value == k.Default) {
				t.Errorf("%s=%s is kept as %+v", k.Key, value, s)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var again Settings
			if err := json.Unmarshal(text, &again); err != nil || again != s {
				t.Errorf("%s=%s comes back from %s as %+v: %v", k.Key, value, text, again, err)
			}
			if known, err := s.Set(k.Key, k.Default); !known || err != nil || s != zero {
				t.Errorf("%s=%s after %s leaves %+v: %v", k.Key, k.Default, value, s, err)
			}
		}
	}
}

func TestBadValuesGetASentence(t *testing.T) {
	for given, want := range map[string]string{
		"centric.cache=-1":    "it is a whole number of rows from 0 to",
		"leap.cache=some":     "it is a whole number of rows from 0 to",
		"leap.mode=go":        "{leap.mode}=go: it is one of auto, stay, migrate",
		"leap.mode=":          "it is one of",
		"leap.pregather=yes":  "{leap.pregather}=yes: it is on or off",
		"leap.dedup=1":        "it is on or off",
		"leap.balance=auto":   "{leap.balance}=auto: it is on or off",
		"leap.merge=0":        "{leap.merge}=0: it is auto, off, or a number of slots from 1 on",
		"leap.merge=-1":       "a number of slots from 1 on",
		"leap.merge=+3":       "a number of slots from 1 on",
		"leap.merge=x":        "a number of slots from 1 on",
		"leap.sync_every=0":   "it is a whole number from 1 to",
		"leap.sync_every=2.5": "it is a whole number from 1 to",
		"p3.inflight=5":       "it is a whole number from 1 to 4",
		"p3.inflight=0":       "it is a whole number from 1 to 4",
		"p3.roots=owners":     "{p3.roots}=owners: it is one of grain, slices",
		"p3.push=all":         "{p3.push}=all: it is one of resample, blocks",
		"wire.features=f64":   "it is one of stored, bf16",
		"topology=ring":       "it is one of auto, replicated, sharded",
		"pipe.stages=many":    "{pipe.stages}=many: it is nodes, auto, or a whole number from 1 to",
		"pipe.ways=0":         "it is usual, auto, or a whole number from 1 to",
		"pipe.chunks=-2":      "it is shards, or a whole number from 1 to",
		"pipe.halo=old":       "it is one of exact, previous-epoch, sampled, skip",
		"pipe.share=0":        "it is a whole number from 1 to 100, in percent",
		"pipe.share=101":      "in percent",
		"pipe.age=0":          "it is a whole number from 1 to",
		"pipe.period=x":       "it is a whole number from 1 to",
		"pipe.shuffle=yes":    "it is on or off",
		"pipe.histories=old":  "it is one of made, left, zeros",
		"pipe.gradients=old":  "it is one of dropped, kept",

		"local.average_every=0": "it is a whole number from 1 to",
	} {
		name, value, _ := strings.Cut(given, "=")
		var s Settings
		known, err := s.Set(name, value)
		if !known || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: known %v, %v", given, known, err)
		}
		if s != (Settings{}) {
			t.Errorf("%s was refused and has set %+v", given, s)
		}
	}
	var s Settings
	if known, err := s.Set("leap.speed", "9"); known || err != nil {
		t.Errorf("a setting that there is not: known %v, %v", known, err)
	}
	if _, known := s.Get("leap.speed"); known {
		t.Error("a setting that there is not can be told")
	}
}

func TestWhatCanNotBeTogether(t *testing.T) {
	for name, c := range map[string]struct {
		s    Settings
		want string // "": nothing is wrong
	}{
		"none":               {Settings{}, ""},
		"leap":               {Settings{Strategy: Leap, Deterministic: true, Leap: LeapSettings{Mode: migrate, Merge: "2", SyncEvery: 1}}, ""},
		"words for defaults": {Settings{Strategy: Auto, Topology: Auto, Leap: LeapSettings{Mode: Auto, Merge: Auto}}, ""},
		"bf16":               {Settings{Strategy: Centric, Wire: bf16}, ""},
		"bits and bf16":      {Settings{Deterministic: true, Wire: bf16}, "wire.features=bf16 rounds"},
		"f32":                {Settings{Strategy: Centric, Wire: "f32"}, "wire.features=f32"},
		"steps of local":     {Settings{Local: LocalSettings{Average: -1}}, "local.average_every=-1"},
		"wire":               {Settings{Wire: "f8"}, "wire.features=f8"},
		"topology":           {Settings{Topology: "ring"}, "topology=ring"},
		"mode":               {Settings{Leap: LeapSettings{Mode: "go"}}, "leap.mode=go"},
		"merge":              {Settings{Leap: LeapSettings{Merge: "none"}}, "leap.merge=none"},
		"negative sync":      {Settings{Leap: LeapSettings{SyncEvery: -1}}, "leap.sync_every=-1"},
		"cache":              {Settings{Centric: CentricSettings{Cache: -1}}, "centric.cache=-1"},
		"leap's cache":       {Settings{Leap: LeapSettings{Cache: -1}}, "leap.cache=-1"},
		"negative inflight":  {Settings{P3: P3Settings{Inflight: -1}}, "p3.inflight=-1"},
		"stay and updates":   {Settings{Leap: LeapSettings{Mode: stay, SyncEvery: 4}}, "leap.sync_every=4: a model that stays and updates itself would learn from its own node's roots alone"},
		"bits and updates":   {Settings{Deterministic: true, Leap: LeapSettings{SyncEvery: 4}}, "{deterministic} promises that they don't"},
		"stay and slots":     {Settings{Leap: LeapSettings{Mode: stay, Merge: off}}, "leap.merge=off: models that stay have no slots to merge"},
		"updates":            {Settings{Strategy: Leap, Leap: LeapSettings{SyncEvery: 4}}, ""},
		"updates and slots":  {Settings{Strategy: Leap, Leap: LeapSettings{Mode: migrate, Merge: "2", SyncEvery: 4}}, ""},
		"updates by others":  {Settings{Strategy: Centric, Leap: LeapSettings{SyncEvery: 4}}, "leap.sync_every=4: only models that tour update themselves"},
		"updates by p3":      {Settings{Strategy: P3, Leap: LeapSettings{SyncEvery: 4}}, "choose {strategy} leap"},
		"updates of one":     {Settings{Strategy: Single, Leap: LeapSettings{SyncEvery: 4}}, "choose {strategy} leap"},
		"updates and auto":   {Settings{Strategy: Auto, Leap: LeapSettings{SyncEvery: 4}}, "choose {strategy} leap"},
		"inflight":           {Settings{Strategy: P3, P3: P3Settings{Inflight: 4}}, ""},
		"inflight and bits":  {Settings{Strategy: P3, Deterministic: true, P3: P3Settings{Inflight: 2}}, ""},
		"too many":           {Settings{Strategy: P3, P3: P3Settings{Inflight: 5}}, "p3.inflight=5: it is a whole number from 1 to 4"},
		"inflight and auto":  {Settings{Strategy: Auto, P3: P3Settings{Inflight: 2}}, "p3.inflight=2: only p3 has several batches under way, on older weights: choose {strategy} p3"},
		"inflight by leap":   {Settings{Strategy: Leap, P3: P3Settings{Inflight: 2}}, "choose {strategy} p3"},
		"roots":              {Settings{P3: P3Settings{Roots: "owners"}}, "p3.roots=owners: it is one of grain, slices"},
		"push":               {Settings{P3: P3Settings{Push: "none"}}, "p3.push=none: it is one of resample, blocks"},
		"roots and push":     {Settings{P3: P3Settings{Roots: grain, Push: resample}}, ""},
		"pipe":               {Settings{Strategy: Pipe, Deterministic: true, Pipe: PipeSettings{Stages: 3, Ways: 2, Chunks: 12}}, ""},
		"few chunks":         {Settings{Strategy: Pipe, Pipe: PipeSettings{Stages: 3, Chunks: 2}}, "pipe.stages=3, pipe.chunks=2: with fewer chunks than stages"},
		"many ways":          {Settings{Strategy: Pipe, Pipe: PipeSettings{Ways: 3, Chunks: 2}}, "pipe.ways=3, pipe.chunks=2: each way has one chunk at least"},
		"old rows":           {Settings{Strategy: Pipe, Pipe: PipeSettings{Ways: 2, Halo: RowsSkip}}, "pipe.halo=skip: histories are made of rows of now"},
		"old rows of graph":  {Settings{Strategy: Graph, Pipe: PipeSettings{Halo: RowsSkip, Age: 3}}, ""},
		"a share of what":    {Settings{Strategy: Graph, Pipe: PipeSettings{Share: 3}}, "pipe.share=3 is for pipe.halo=sampled"},
		"an age of what":     {Settings{Strategy: Graph, Pipe: PipeSettings{Age: 3}}, "pipe.age=3 is for pipe.halo=skip"},
		"bits of graph":      {Settings{Strategy: Graph, Deterministic: true}, "choose {pipe.ways}=N"},
		"edges elsewhere":    {Settings{Strategy: Pipe, Topology: sharded}, "topology=sharded: with {strategy} pipe each node knows all edges"},
		"edges of groups":    {Settings{Strategy: Grappa, Topology: replicated}, "topology=replicated: with {strategy} grappa nodes bring the edges that their groups see, and no others"},
		"edges of others":    {Settings{Strategy: Grappa, Topology: sharded}, ""},
		"bits of ways":       {Settings{Strategy: Graph, Deterministic: true, Pipe: PipeSettings{Ways: 4}}, ""},
		"negative stages":    {Settings{Pipe: PipeSettings{Stages: -2}}, "pipe.stages=-2"},
	} {
		err := c.s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSlotsAndNodes(t *testing.T) {
	s := Settings{Leap: LeapSettings{Merge: "7"}}
	if err := s.CheckNodes(7); err != nil {
		t.Error(err)
	}
	want := "leap.merge=7: on 3 nodes a step has at most 3 slots, one for each model: choose 1 to 3, auto or off"
	if err := s.CheckNodes(3); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := s.CheckNodes(6); err == nil {
		t.Error("seven slots on six nodes")
	}
	s.Leap.Merge = "off"
	if err := s.CheckNodes(1); err != nil {
		t.Error(err)
	}
}

func TestGroupsThatAverageAndNodes(t *testing.T) {
	s := Settings{Strategy: Grappa, Grappa: GrappaSettings{Average: 2}}
	want := "grappa.average_every=2: each node has a model, and there are groups for 4 of 5 nodes only: choose {grappa.groups}=5 or more, or leave it out"
	if err := s.CheckNodes(5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, nodes := range []int{1, 3, 4} {
		if err := s.CheckNodes(nodes); err != nil {
			t.Error(err)
		}
	}
	s.Grappa.Groups = 5
	if err := s.CheckNodes(5); err != nil {
		t.Error(err)
	}
	s.Grappa.Average, s.Grappa.Groups = 0, 2
	if err := s.CheckNodes(5); err != nil {
		t.Error(err)
	}
}

func TestStagesAndNodes(t *testing.T) {
	s := Settings{Strategy: Pipe, Pipe: PipeSettings{Stages: 3, Ways: 2}}
	if err := s.CheckNodes(6); err != nil {
		t.Error(err)
	}
	want := "3 stages of 2 ways are work for 6 nodes, and the dataset is on 5: choose fewer with {pipe.stages} and pipe.ways"
	if err := s.CheckNodes(5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	// Ways of one stage may be more than nodes, as where nodes have gone.
	for name, p := range map[string]PipeSettings{Graph: {Ways: 7}, Pipe: {Ways: 7}} {
		if err := (&Settings{Strategy: name, Pipe: p}).CheckNodes(5); err != nil {
			t.Errorf("%s with 7 ways on 5 nodes: %v", name, err)
		}
	}
	asked := Settings{Strategy: Pipe, Pipe: PipeSettings{Stages: Asked, Ways: Asked}}
	if err := errors.Join(asked.Check(), asked.CheckNodes(1), asked.CheckShards(1)); err != nil {
		t.Error(err)
	}
	s.Pipe.Stages, s.Pipe.Ways = 6, 1
	want = "6 stages of 1 way are work for 6 nodes, and the dataset is on 5: choose fewer with {pipe.stages} and pipe.ways"
	if err := s.CheckNodes(5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.Pipe = PipeSettings{Stages: 3, Ways: 2}
	s.Pipe.Chunks = 7
	if err := s.CheckShards(7); err != nil {
		t.Error(err)
	}
	want = "the dataset has 6 shards, which can't be 7 chunks, nor as many ways: choose 6 at most with {pipe.chunks} and pipe.ways, or import it with more {dataset.shards}"
	if err := s.CheckShards(6); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.Pipe = PipeSettings{Stages: 5}
	if err := s.CheckShards(5); err != nil {
		t.Error(err)
	}
	want = "pipe.stages=5: the dataset has 3 shards, which are the chunks, and with fewer chunks than stages some stages never have any to do: choose 3 stages or fewer, or import it with more {dataset.shards}"
	if err := s.CheckShards(3); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, c := range []struct {
		strategy             string
		s                    PipeSettings
		stages, ways, chunks int
	}{
		{Pipe, PipeSettings{}, 4, 1, 20}, {Pipe, PipeSettings{Ways: 2}, 2, 2, 20}, {Pipe, PipeSettings{Stages: 2, Chunks: 5}, 2, 1, 5},
		{Pipe, PipeSettings{Stages: Asked, Ways: Asked}, 4, 1, 20}, {Graph, PipeSettings{Ways: Asked}, 1, 5, 5}, {Graph, PipeSettings{}, 1, 5, 5}, {Graph, PipeSettings{Ways: 2}, 1, 2, 2},
	} {
		p := &c.s
		if a, b, d := p.StagesOf(c.strategy, 5, 4), p.WaysOf(c.strategy, 5), p.ChunksOf(c.strategy, 5, 20); a != c.stages || b != c.ways || d != c.chunks {
			t.Errorf("%s, %+v: %d stages, %d ways, %d chunks", c.strategy, c.s, a, b, d)
		}
	}
	s = Settings{Strategy: Auto, Pipe: PipeSettings{Ways: 2}}
	if err := s.CheckUse(""); err == nil || !strings.Contains(err.Error(), "{pipe.ways}=2 is for {strategy} pipe or graph, which auto never chooses") {
		t.Error(err)
	}
	// graph has what of this is of use without histories.
	for key, ok := range map[string]bool{"pipe.ways": true, "pipe.halo": true, "pipe.stages": false, "pipe.period": false} {
		s := Settings{Strategy: Graph}
		value := "2"
		if key == "pipe.halo" {
			value = RowsSampled
		}
		if _, err := s.Set(key, value); err != nil {
			t.Fatal(err)
		}
		if err := s.CheckUse(Graph); (err == nil) != ok {
			t.Errorf("{strategy} graph with %s: %v", key, err)
		}
	}
}
