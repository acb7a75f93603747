package grappa

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// declared are the declarations of a program with this strategy alone.
var declared = strategy.Declarations{Strategy.Declaration}

// job makes settings of a job, by names without "grappa.".
func job(values ...string) strategy.Settings {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = prefix + v
	}
	return strategy.Given(Name, all...)
}

// given makes settings from values that can be, by names without "grappa.".
func given(values ...string) (s Settings) {
	j := job(values...)
	if err := s.keys().Parse(j.Values); err != nil {
		panic(err)
	}
	return s
}

// others returns a value for each key that is not its default.
func others() map[string]string {
	return map[string]string{
		"loader": "strict", "depth": "3", "cap": "3", "groups": "3", "swept": "3", "sweep": "off", "switch": "plateau", "period": "3",
		"correction": "node", "shrink": "0.5", "pseudo": "3", "hops": "all", "loss": "groups", "phases": "3", "prefetch": "off", "cache": "3", "average_every": "3",
	}
}

func TestDefaults(t *testing.T) {
	want := Settings{
		Loader: "halo", Depth: 1, Sweep: "keyed", Switch: "period", Period: 50, Correction: "none", Hops: "first", Loss: "exact", Running: Running{Prefetch: true, Cache: strategy.Asked}, Average: 1,
	}
	if got := Of(&strategy.Settings{Strategy: Name}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Settings{
		Loader: "strict", Depth: 3, Cap: 3, Groups: 3, Swept: 3, Sweep: "off", Switch: "plateau", Period: 3, Correction: "node", Shrink: 0.5, Pseudo: 3, Hops: "all", Loss: "groups", Running: Running{Phases: 3, Cache: 3}, Average: 3,
	}
	values := others()
	s := strategy.Settings{Strategy: Name, Values: map[string]string{}}
	for _, k := range Strategy.Keys() {
		s.Values[k.Key] = values[strings.TrimPrefix(k.Key, prefix)]
	}
	if got := Of(&s); got != want || len(s.Values) != len(values) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestEachValueIsSetAndStored(t *testing.T) {
	zero := strategy.Settings{Strategy: Name}
	for _, k := range Strategy.Keys() {
		if k.Help == "" {
			t.Errorf("%s has no words", k.Key)
		}
		defaults := 0
		for value := range strings.SplitSeq(k.Values, "|") {
			if strings.ToUpper(value) == value {
				value = others()[strings.TrimPrefix(k.Key, prefix)]
			}
			s := zero
			if known, err := declared.Set(&s, k.Key, value); !known || err != nil {
				t.Errorf("%s=%s: known %v, %v", k.Key, value, known, err)
			}
			if value == k.Default {
				defaults++
				value = ""
			}
			if s.Values[k.Key] != value || (Of(&s) == Of(&zero)) != (value == "") || reflect.DeepEqual(s, zero) != (value == "") {
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
			if known, err := declared.Set(&s, k.Key, k.Default); !known || err != nil || !reflect.DeepEqual(s, zero) {
				t.Errorf("%s=%s after %s leaves %+v: %v", k.Key, k.Default, value, s, err)
			}
		}
		if number := strings.ToUpper(k.Values) == k.Values; (defaults == 1) == number {
			t.Errorf("%s, %s: %d defaults", k.Key, k.Values, defaults)
		}
	}
}

func TestBadValuesOfGrappaGetASentence(t *testing.T) {
	for given, want := range map[string]string{
		"grappa.loader=all":         "{grappa.loader}=all: it is one of halo, strict, halo-sampled",
		"grappa.depth=0":            "it is a whole number from 1 to",
		"grappa.cap=0":              "{grappa.cap}=0: it is auto, or a whole number from 1 to",
		"grappa.groups=-1":          "it is auto, or a whole number from 1 to",
		"grappa.groups=many":        "it is auto, or a whole number from 1 to",
		"grappa.swept=0.5":          "it is auto, or a whole number from 1 to",
		"grappa.sweep=on":           "it is one of keyed, published, off",
		"grappa.switch=never":       "it is one of period, plateau",
		"grappa.period=0":           "{grappa.period}=0: it is a whole number of epochs from 1 to",
		"grappa.period=1e3":         "it is a whole number of epochs",
		"grappa.correction=inverse": "it is one of none, batch, node, self-normalised, message, released",
		"grappa.shrink=1.5":         "{grappa.shrink}=1.5: it is a number from 0 to 1",
		"grappa.shrink=NaN":         "it is a number from 0 to 1",
		"grappa.pseudo=-1":          "it is a number from 0 to",
		"grappa.hops=2":             "it is one of first, all",
		"grappa.loss=mean":          "it is one of exact, groups",
		"grappa.prefetch=yes":       "it is on or off",
		"grappa.average_every=0":    "it is a whole number from 1 to",
	} {
		name, value, _ := strings.Cut(given, "=")
		var s strategy.Settings
		known, err := declared.Set(&s, name, value)
		if !known || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: known %v, %v", given, known, err)
		}
		if !reflect.DeepEqual(s, strategy.Settings{}) {
			t.Errorf("%s was refused and has set %+v", given, s)
		}
	}
}

func TestWhatGrappaCanNotHaveTogether(t *testing.T) {
	for name, c := range map[string]struct {
		s    strategy.Settings
		want string // "": nothing is wrong
	}{
		"none":            {job(), ""},
		"words":           {job("loader=halo", "sweep=keyed", "switch=period", "correction=batch", "hops=first", "loss=exact"), ""},
		"loader":          {job("loader=all"), "{grappa.loader}=all: it is one of"},
		"sweep":           {job("sweep=on"), "{grappa.sweep}=on: it is one of"},
		"switch":          {job("switch=now"), "{grappa.switch}=now: it is one of"},
		"correction":      {job("correction=d/a"), "{grappa.correction}=d/a: it is one of"},
		"hops":            {job("hops=two"), "{grappa.hops}=two: it is one of"},
		"loss":            {job("loss=sum"), "{grappa.loss}=sum: it is one of"},
		"groups":          {job("groups=-1"), "{grappa.groups}=-1: it is auto, or a whole number"},
		"period":          {job("period=-3"), "{grappa.period}=-3: it is a whole number"},
		"swept":           {job("swept=-3"), "{grappa.swept}=-3"},
		"cap":             {job("loader=halo-sampled", "cap=-3"), "{grappa.cap}=-3"},
		"average":         {job("average_every=-3"), "{grappa.average_every}=-3"},
		"depth":           {job(fmt.Sprint("depth=", strategy.MostCount+1)), "{grappa.depth}="},
		"shrink":          {job("shrink=NaN"), "{grappa.shrink}=NaN: it is a number from 0 to 1"},
		"pseudo":          {job("pseudo=+Inf"), "{grappa.pseudo}=+Inf: it is a number from 0"},
		"strict depth":    {job("loader=strict", "depth=2"), "grappa.depth=2: a group that is strict sees nothing beyond"},
		"sampled depth":   {job("loader=halo-sampled", "depth=2"), "grappa.depth=2: grappa.loader=halo-sampled keeps some"},
		"cap of all":      {job("cap=9"), "grappa.cap=9: only grappa.loader=halo-sampled"},
		"many rows":       {job("loader=halo-sampled", fmt.Sprint("cap=", strategy.MostRows)), ""},
		"more rows":       {job("loader=halo-sampled", fmt.Sprint("cap=", strategy.MostRows+1)), "{grappa.cap}="},
		"swept and off":   {job("sweep=off", "swept=1"), "grappa.swept=1: with grappa.sweep=off"},
		"plateau and off": {job("sweep=off", "switch=plateau"), "grappa.switch=plateau: with grappa.sweep=off there is nothing to turn to"},
		"shrunk messages": {job("correction=message", "shrink=0.5"), "grappa.correction=message has no weights"},
		"released, drawn": {job("correction=released", "pseudo=1"), "grappa.correction=released has no weights"},
		"message and off": {job("loader=strict", "correction=message", "sweep=off"), "grappa.correction=message: with grappa.sweep=off"},
		"hops of none":    {job("correction=message", "hops=all"), "grappa.hops=all: grappa.correction=message weighs no losses"},
		"two means":       {job("correction=self-normalised", "loss=groups"), "grappa.loss=groups: grappa.correction=self-normalised"},
		"one mean, late":  {job("average_every=2", "correction=self-normalised"), "grappa.average_every=2: grappa.correction=self-normalised makes one mean"},
		"phases, late":    {job("average_every=2", "phases=2"), "grappa.phases=2: with grappa.average_every=2 a node updates its model once"},
		"strict messages": {job("loader=strict", "correction=message"), ""},
		"shrunk":          {job("correction=node", "shrink=1", "pseudo=2", "hops=all"), ""},
		"nothing drawn":   {job("shrink=1"), "grappa.correction=none has no weights"},
		"all of nothing":  {job("hops=all"), "grappa.hops=all: grappa.correction=none weighs no losses"},
		"edges of groups": {strategy.Given(Name, "topology=replicated"), "topology=replicated: with {strategy} grappa nodes bring the edges that their groups see, and no others"},
		"edges of others": {strategy.Given(Name, "topology=sharded"), ""},
		"edges of all":    {strategy.Given("leap", "topology=replicated"), ""},
	} {
		err := declared.Check(&c.s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, name := range []string{"", strategy.Auto, strategy.Single, "leap"} {
		s := strategy.Given(name, "grappa.period=3")
		if err := declared.Check(&s); err == nil || !strings.Contains(err.Error(), "settings of grappa are for {strategy} grappa") {
			t.Errorf("by %q: %v", name, err)
		}
	}
	s := strategy.Given("leap", "grappa.period=3")
	if err := declared.CheckUse(&s, "leap"); err == nil || err.Error() != "{grappa.period}=3 is for {strategy} grappa, and this job's is leap: leave it out, or choose another" {
		t.Error(err)
	}
	if err := declared.CheckUse(&s, strategy.Auto); err == nil || err.Error() != "{grappa.period}=3 is for {strategy} grappa, which auto never chooses: leave it out, or name the strategy" {
		t.Error(err)
	}
	s = job("average_every=3")
	s.Deterministic = true
	if err := declared.Check(&s); err == nil || !strings.Contains(err.Error(), "grappa.average_every=3: models that update themselves") {
		t.Error(err)
	}
}

func TestGroupsThatAverageAndNodes(t *testing.T) {
	s := job("average_every=2")
	want := "grappa.average_every=2: each node has a model, and there are groups for 4 of 5 nodes only: choose {grappa.groups}=5 or more, or leave it out"
	if err := declared.CheckNodes(&s, 5); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, nodes := range []int{1, 3, 4} {
		if err := declared.CheckNodes(&s, nodes); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []strategy.Settings{job("average_every=2", "groups=5"), job("groups=2"), strategy.Given("leap", "grappa.average_every=2")} {
		if err := declared.CheckNodes(&s, 5); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestGroupsAndShards(t *testing.T) {
	for _, c := range []struct {
		s      strategy.Settings
		shards int
		want   string
	}{
		{job(), 1, ""},
		{job("groups=8"), 8, ""},
		{job("groups=9"), 8, "grappa.groups=9: each needs a shard of its own, and the dataset has 8: choose fewer, or import it with more {dataset.shards}"},
		{job("groups=4", "swept=6"), 8, ""},
		{job("groups=4", "swept=7"), 8, "grappa.swept=7: a group has at least 2 of the dataset's 8 shards by itself, and at most 6 are others': choose fewer"},
		{job("groups=3", "swept=6"), 8, ""},
		{strategy.Given("leap", "grappa.groups=9"), 8, ""},
	} {
		if err := declared.CheckShards(&c.s, c.shards); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%+v on %d shards: %v", c.s, c.shards, err)
		}
	}
	for shards, want := range map[int]int{1: 1, 3: 3, 4: 4, 64: 4} {
		s := given()
		if got := s.groupsOf(shards); got != want {
			t.Errorf("%d shards are in %d groups", shards, got)
		}
	}
}

// Where the settings don't say, the number of groups is written down when a job is created.
func TestGroupsAreWrittenDown(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		s    strategy.Settings
		at   strategy.Place
		want int
	}{
		{job(), strategy.Place{Nodes: 3, Shards: 64}, 3},
		{job(), strategy.Place{Nodes: 8, Shards: 64, Bytes: 4 * gib, Memory: 64 * gib}, 8},
		{job(), strategy.Place{Nodes: 4, Shards: 64, Bytes: 4 * gib, Memory: 1 * gib}, 32},
		{job(), strategy.Place{Nodes: 3, Shards: 64, Bytes: 4 * gib, Memory: 1 * gib}, 33},
		{job(), strategy.Place{Nodes: 4, Shards: 16, Bytes: 4 * gib, Memory: 1 * gib}, 16},
		{job(), strategy.Place{Nodes: 5, Shards: 3}, 3},
		{job("groups=7"), strategy.Place{Nodes: 3, Shards: 64}, 7},
		{job(), strategy.Place{}, 0},
		{strategy.Given("leap"), strategy.Place{Nodes: 3, Shards: 64}, 0},
	} {
		before := c.s.Values["grappa.groups"]
		s := c.s
		complete(&s, c.at)
		if got := Of(&s).Groups; got != c.want {
			t.Errorf("%+v at %+v has %d groups, not %d", c.s, c.at, got, c.want)
		}
		if c.s.Values["grappa.groups"] != before {
			t.Error("settings that others may share were changed")
		}
	}
}

// A run goes on with settings that teach the same only.
func TestSettingsThatTeachTheSame(t *testing.T) {
	plain := job()
	for name, value := range others() {
		s := job(name + "=" + value)
		if same := declared.Same(&plain, &s); same != (name == "prefetch" || name == "phases" || name == "cache") {
			t.Errorf("%s=%s: the same %v", name, value, same)
		}
		if !declared.Same(&s, &s) {
			t.Errorf("%s=%s is not the same as itself", name, value)
		}
	}
	leap := strategy.Given("leap")
	if declared.Same(&plain, &leap) || declared.Same(&leap, &plain) {
		t.Error("another strategy teaches the same")
	}
}
