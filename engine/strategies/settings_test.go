package strategies_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

var declared = strategies.All.Declared()

// Each value of each setting is stored as users give it, and a default is not stored.
func TestEachValueIsStored(t *testing.T) {
	for _, k := range declared.Keys() {
		if k.Help == "" || k.Applies == "" || k.Default == "" {
			t.Errorf("%s has no words", k.Key)
		}
		for value := range strings.SplitSeq(k.Values, "|") {
			if strings.ToUpper(value) == value {
				if value = "3"; k.Key == "grappa.shrink" {
					value = "0.5"
				}
			}
			var s strategy.Settings
			if known, err := declared.Set(&s, k.Key, value); !known || err != nil {
				t.Errorf("%s=%s: known %v, %v", k.Key, value, known, err)
			}
			want := map[string]string{k.Key: value}
			if value == k.Default {
				want = nil
			}
			if !reflect.DeepEqual(s.Values, want) {
				t.Errorf("%s=%s is stored as %v", k.Key, value, s.Values)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var again strategy.Settings
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%s=%s comes back from %s as %+v: %v", k.Key, value, text, again, err)
			}
			before := s
			if known, err := declared.Set(&s, k.Key, k.Default); !known || err != nil || s.Values != nil {
				t.Errorf("%s=%s after %s leaves %+v: %v", k.Key, k.Default, value, s, err)
			}
			if !reflect.DeepEqual(before.Values, want) {
				t.Errorf("%s=%s changes a copy made before", k.Key, k.Default)
			}
		}
	}
}

func TestBadValuesGetASentence(t *testing.T) {
	for given, want := range map[string]string{
		"centric.cache=-1":    "{centric.cache}=-1: it is off, auto, or a whole number of rows from 0 to",
		"leap.cache=some":     "it is off, auto, or a whole number of rows from 0 to",
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

		"local.average_every=0":  "it is a whole number from 1 to",
		"local.average_every=-1": "it is a whole number from 1 to",
	} {
		key, value, _ := strings.Cut(given, "=")
		var s strategy.Settings
		known, err := declared.Set(&s, key, value)
		if !known || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: known %v, %v", given, known, err)
		}
		if s.Values != nil {
			t.Errorf("%s was refused and has set %+v", given, s)
		}
		if value == "" {
			continue
		}
		s = strategy.Given("leap", given) // whoever made it
		if err := declared.Check(&s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s in a recipe: %v", given, err)
		}
	}
	var s strategy.Settings
	if known, err := declared.Set(&s, "leap.speed", "9"); known || err != nil {
		t.Errorf("an unknown setting: known %v, %v", known, err)
	}
	s = strategy.Given("leap", "leap.speed=9")
	if err := declared.Check(&s); err == nil || !strings.Contains(err.Error(), "there is no setting leap.speed: {train.options} lists what there is") {
		t.Errorf("an unknown setting in a recipe: %v", err)
	}
}

// What contradicts what. Each strategy's package tests its own, too.
func TestContradictions(t *testing.T) {
	const bits = "deterministic"
	for name, c := range map[string]struct {
		given string // the strategy, settings, and bits
		want  string // "": nothing is wrong
	}{
		"none":               {" ", ""},
		"leap":               {"leap leap.mode=migrate leap.merge=2 leap.sync_every=1 " + bits, ""},
		"words for defaults": {"auto topology=auto leap.mode=auto leap.merge=auto", ""},
		"bf16":               {"centric wire.features=bf16", ""},
		"bits and bf16":      {"leap wire.features=bf16 " + bits, "wire.features=bf16 rounds"},
		"stay and updates":   {"leap leap.mode=stay leap.sync_every=4", "leap.sync_every=4: a model that stays and updates itself would learn from its own node's roots alone"},
		"bits and updates":   {"leap leap.sync_every=4 " + bits, "{deterministic} promises that they don't"},
		"stay and slots":     {"leap leap.mode=stay leap.merge=off", "leap.merge=off: models that stay have no slots to merge"},
		"updates":            {"leap leap.sync_every=4", ""},
		"updates and slots":  {"leap leap.mode=migrate leap.merge=2 leap.sync_every=4", ""},
		"updates by others":  {"centric leap.sync_every=4", "leap.sync_every=4: only models that tour update themselves"},
		"updates by p3":      {"p3 leap.sync_every=4", "choose {strategy} leap"},
		"updates of one":     {"single leap.sync_every=4", "choose {strategy} leap"},
		"updates and auto":   {"auto leap.sync_every=4", "choose {strategy} leap"},
		"inflight":           {"p3 p3.inflight=4", ""},
		"inflight and bits":  {"p3 p3.inflight=2 " + bits, ""},
		"inflight and auto":  {"auto p3.inflight=2", "p3.inflight=2: only p3 has several batches under way, on older weights: choose {strategy} p3"},
		"inflight by leap":   {"leap p3.inflight=2", "choose {strategy} p3"},
		"roots and push":     {"p3 p3.roots=grain p3.push=resample", ""},
		"edges elsewhere":    {"pipe topology=replicated", "topology=replicated: with {strategy} pipe a node has the edges of its part of the graph"},
		"edges of groups":    {"grappa topology=replicated", "topology=replicated: with {strategy} grappa nodes bring the edges that their groups see, and no others"},
		"edges of others":    {"grappa topology=sharded", ""},
		"groups by others":   {"leap grappa.groups=3", "settings of grappa are for {strategy} grappa"},
	} {
		by, rest, _ := strings.Cut(c.given, " ")
		values := strings.Fields(rest)
		deterministic := len(values) > 0 && values[len(values)-1] == bits
		if deterministic {
			values = values[:len(values)-1]
		}
		s := strategy.Given(by, values...)
		s.Deterministic = deterministic
		err := declared.Check(&s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A setting that would have no effect is refused, with what to do.
func TestSettingsOfOtherStrategies(t *testing.T) {
	for _, c := range []struct{ asked, given, want string }{
		{"", "leap.mode=stay", ""},
		{"auto", "p3.push=blocks", ""},
		{"auto", "topology=sharded", ""},
		{"leap", "leap.mode=stay", ""},
		{"graph", "pipe.ways=2", ""},
		{"graph", "topology=replicated", ""},
		{"graph", "pipe.stages=2", "{pipe.stages}=2 is for {strategy} pipe, and this job's is graph: leave it out, or choose another"},
		{"", "pipe.ways=2", "{pipe.ways}=2 is for {strategy} pipe or graph, which auto never chooses: leave it out, or name the strategy"},
		{"auto", "local.average_every=4", "{local.average_every}=4 is for {strategy} local, which auto never chooses"},
		{"single", "topology=sharded", "{topology}=sharded is for nodes that share a job, and {strategy} single has one do it all: leave one of the two out"},
		{"single", "leap.mode=stay", "{leap.mode}=stay is for {strategy} leap, and this job's is single: leave it out, or choose that one or auto"},
		{"centric", "p3.push=blocks", "{p3.push}=blocks is for {strategy} p3, and this job's is centric: leave it out, or choose that one or auto"},
		{"leap", "grappa.groups=2", "{grappa.groups}=2 is for {strategy} grappa, and this job's is leap: leave it out, or choose another"},
	} {
		s := strategy.Given(c.asked, c.given)
		err := declared.CheckUse(&s, c.asked)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.asked, c.given, err, c.want)
		}
	}
}

func TestSettingsOfSweeps(t *testing.T) {
	for _, c := range []struct{ asked, given, want string }{
		{"leap", "leap.mode=stay", ""},
		{"", "topology=sharded", ""},
		{"pipe", "pipe.stages=2", "{sweep}: the strategy pipe keeps rows of all layers for one model only: take another {strategy}, or start one job for each model"},
		{"graph", "pipe.ways=2", "{sweep}: the strategy graph keeps rows"},
		{"p3", "p3.push=blocks", "{sweep}: the strategy p3 adds up the first layer of one model only"},
		{"auto", "p3.push=blocks", "{p3.push}=blocks is for {strategy} p3, which trains no sweeps: leave it out, or start one job for each model"},
		{"auto", "pipe.ways=2", "{pipe.ways}=2 is for {strategy} pipe or graph, which trains no sweeps"},
	} {
		s := strategy.Given(c.asked, c.given)
		err := declared.CheckSweep(&s, c.asked)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.asked, c.given, err, c.want)
		}
	}
}

func TestSlotsAndNodes(t *testing.T) {
	s := strategy.Given("leap", "leap.merge=7")
	if err := declared.CheckNodes(&s, 7); err != nil {
		t.Error(err)
	}
	want := "leap.merge=7: on 3 nodes a step has at most 3 slots, one for each model: choose 1 to 3, auto or off"
	if err := declared.CheckNodes(&s, 3); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := declared.CheckNodes(&s, 6); err == nil {
		t.Error("seven slots on six nodes")
	}
	s = strategy.Given("leap", "leap.merge=off")
	if err := declared.CheckNodes(&s, 1); err != nil {
		t.Error(err)
	}
}

// Settings as earlier versions stored them mean the same, and are those of a valid job.
func TestSettingsOfEarlierVersions(t *testing.T) {
	for stored, want := range map[string]strategy.Settings{
		`{}`:                    {},
		`{"strategy":"single"}`: {Strategy: "single"},
		`{"strategy":"centric","wire":"bf16","topology":"sharded","centric":{"cache":300}}`:                                                                          strategy.Given("centric", "wire.features=bf16", "topology=sharded", "centric.cache=300"),
		`{"strategy":"leap","leap":{"mode":"migrate","apart":true,"repeated":true,"merge":"2","uneven":true,"cache":2000000}}`:                                       strategy.Given("leap", "leap.mode=migrate", "leap.pregather=off", "leap.dedup=off", "leap.merge=2", "leap.balance=off", "leap.cache=2000000"),
		`{"strategy":"leap","leap":{"sync_every":4}}`:                                                                                                                strategy.Given("leap", "leap.sync_every=4"),
		`{"strategy":"p3","p3":{"inflight":3,"roots":"slices","push":"blocks"}}`:                                                                                     strategy.Given("p3", "p3.inflight=3", "p3.roots=slices", "p3.push=blocks"),
		`{"strategy":"local","local":{"average_every":4}}`:                                                                                                           strategy.Given("local", "local.average_every=4"),
		`{"strategy":"grappa","grappa":{"loader":"strict","groups":3,"correction":"node","shrink":0.25,"pseudo":2,"serial":true}}`:                                   strategy.Given("grappa", "grappa.loader=strict", "grappa.groups=3", "grappa.correction=node", "grappa.shrink=0.25", "grappa.pseudo=2", "grappa.prefetch=off"),
		`{"strategy":"grappa","grappa":{"loader":"halo-sampled","cap":900,"sweep":"published","swept":2,"switch":"plateau","period":9}}`:                             strategy.Given("grappa", "grappa.loader=halo-sampled", "grappa.cap=900", "grappa.sweep=published", "grappa.swept=2", "grappa.switch=plateau", "grappa.period=9"),
		`{"strategy":"grappa","grappa":{"depth":2,"loss":"groups","correction":"batch","hops":"all","average_every":3}}`:                                             strategy.Given("grappa", "grappa.depth=2", "grappa.loss=groups", "grappa.correction=batch", "grappa.hops=all", "grappa.average_every=3"),
		`{"strategy":"pipe","pipe":{"stages":-1,"ways":2,"chunks":12,"ordered":true,"period":5,"histories":"left","single":true,"keep_gradients":true,"keep":true}}`: strategy.Given("pipe", "pipe.stages=auto", "pipe.ways=2", "pipe.chunks=12", "pipe.shuffle=off", "pipe.period=5", "pipe.histories=left", "pipe.compensate=off", "pipe.gradients=kept", "pipe.recompute=off"),
		`{"strategy":"pipe","pipe":{"again":true,"ways":-1}}`:                                                                                                        strategy.Given("pipe", "pipe.recompute=on", "pipe.ways=auto"),
		`{"strategy":"graph","pipe":{"halo":"skip","age":3}}`:                                                                                                        strategy.Given("graph", "pipe.halo=skip", "pipe.age=3"),
		`{"strategy":"graph","deterministic":true,"pipe":{"ways":3,"halo":"sampled","share":20}}`: func() strategy.Settings {
			s := strategy.Given("graph", "pipe.ways=3", "pipe.halo=sampled", "pipe.share=20")
			s.Deterministic = true
			return s
		}(),
	} {
		var got strategy.Settings
		if err := json.Unmarshal([]byte(stored), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v: %v", stored, got, err)
		}
		if err := declared.Check(&got); err != nil {
			t.Errorf("%s: %v", stored, err)
		}
	}
}

// Settings of a later version can't be parsed: a run goes on with none but the same.
func TestSettingsOfLaterVersionsAreOnlyThemselves(t *testing.T) {
	usual, later := strategy.Given("grappa"), strategy.Given("grappa", "grappa.correction=future", "grappa.loss=groups")
	if declared.Same(&usual, &later) || declared.Same(&later, &usual) || !declared.Same(&later, &later) {
		t.Error("settings that nobody knows count as the defaults")
	}
	var s strategy.Settings
	if err := json.Unmarshal([]byte(`{"strategy":"leap","budget":3,"mode":"x"}`), &s); err != nil || !reflect.DeepEqual(s, strategy.Given("leap")) {
		t.Errorf("a field of a later version: %+v, %v", s, err)
	}
	if s = strategy.Given("leap", "wire.features=stored"); s.Wire() != "" {
		t.Errorf("stored features travel as %q", s.Wire())
	}
}

// FuzzSettings reads stored settings, which may be anything, and checks them.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"strategy":"leap","values":{"leap.mode":"stay"}}`, `{"strategy":"pipe","pipe":{"stages":-1,"ordered":true}}`,
		`{"leap":{"cache":1e300}}`, `{"leap":{"mode":["stay"]}}`, `{"leap":7}`, `{"values":null}`, `{"wire":"","topology":"ring"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s strategy.Settings
		if json.Unmarshal(text, &s) != nil || declared.Check(&s) != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var other strategy.Settings
		if err := json.Unmarshal(again, &other); err != nil || !declared.Same(&s, &other) || declared.Check(&other) != nil {
			t.Errorf("%s is stored as %s, which is read as %+v: %v", text, again, other, err)
		}
	})
}
