package strategy

import (
	"math"
	"strings"
	"testing"
)

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
		var s Settings
		known, err := s.Set(name, value)
		if !known || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: known %v, %v", given, known, err)
		}
		if s != (Settings{}) {
			t.Errorf("%s was refused and has set %+v", given, s)
		}
	}
}

func TestWhatGrappaCanNotHaveTogether(t *testing.T) {
	for name, c := range map[string]struct {
		s    GrappaSettings
		want string // "": nothing is wrong
	}{
		"none":            {GrappaSettings{}, ""},
		"words":           {GrappaSettings{Loader: Halo, Sweep: SweepKeyed, Switch: period, Correction: CorrectBatch, Hops: first, Loss: exact}, ""},
		"loader":          {GrappaSettings{Loader: "all"}, "grappa.loader=all: it is one of"},
		"sweep":           {GrappaSettings{Sweep: "on"}, "grappa.sweep=on: it is one of"},
		"switch":          {GrappaSettings{Switch: "now"}, "grappa.switch=now: it is one of"},
		"correction":      {GrappaSettings{Correction: "d/a"}, "grappa.correction=d/a: it is one of"},
		"hops":            {GrappaSettings{Hops: "two"}, "grappa.hops=two: it is one of"},
		"loss":            {GrappaSettings{Loss: "sum"}, "grappa.loss=sum: it is one of"},
		"groups":          {GrappaSettings{Groups: -1}, "grappa.groups=-1: it is a whole number"},
		"period":          {GrappaSettings{Period: -3}, "grappa.period=-3: it is a whole number"},
		"swept":           {GrappaSettings{Swept: -3}, "grappa.swept=-3"},
		"cap":             {GrappaSettings{Loader: HaloSampled, Cap: -3}, "grappa.cap=-3"},
		"average":         {GrappaSettings{Average: -3}, "grappa.average_every=-3"},
		"depth":           {GrappaSettings{Depth: mostCount + 1}, "grappa.depth="},
		"shrink":          {GrappaSettings{Shrink: math.NaN()}, "grappa.shrink=NaN: it is a number from 0 to 1"},
		"pseudo":          {GrappaSettings{Pseudo: math.Inf(1)}, "grappa.pseudo=+Inf: it is a number from 0"},
		"strict depth":    {GrappaSettings{Loader: Strict, Depth: 2}, "grappa.depth=2: a group that is strict sees nothing beyond"},
		"sampled depth":   {GrappaSettings{Loader: HaloSampled, Depth: 2}, "grappa.depth=2: grappa.loader=halo-sampled keeps some"},
		"cap of all":      {GrappaSettings{Cap: 9}, "grappa.cap=9: only grappa.loader=halo-sampled"},
		"swept and off":   {GrappaSettings{Sweep: off, Swept: 1}, "grappa.swept=1: with grappa.sweep=off"},
		"plateau and off": {GrappaSettings{Sweep: off, Switch: plateau}, "grappa.switch=plateau: with grappa.sweep=off there is nothing to turn to"},
		"shrunk messages": {GrappaSettings{Correction: CorrectMessage, Shrink: 0.5}, "grappa.correction=message has no weights"},
		"released, drawn": {GrappaSettings{Correction: CorrectReleased, Pseudo: 1}, "grappa.correction=released has no weights"},
		"message and off": {GrappaSettings{Loader: Strict, Correction: CorrectMessage, Sweep: off}, "grappa.correction=message: with grappa.sweep=off"},
		"hops of none":    {GrappaSettings{Correction: CorrectMessage, Hops: all}, "grappa.hops=all: grappa.correction=message weighs no losses"},
		"two means":       {GrappaSettings{Correction: CorrectSelf, Loss: groups}, "grappa.loss=groups: grappa.correction=self-normalised"},
		"one mean, late":  {GrappaSettings{Average: 2, Correction: CorrectSelf}, "grappa.average_every=2: grappa.correction=self-normalised makes one mean"},
		"strict messages": {GrappaSettings{Loader: Strict, Correction: CorrectMessage}, ""},
		"shrunk":          {GrappaSettings{Correction: CorrectNode, Shrink: 1, Pseudo: 2, Hops: all}, ""},
		"nothing drawn":   {GrappaSettings{Shrink: 1}, "grappa.correction=none has no weights"},
		"all of nothing":  {GrappaSettings{Hops: all}, "grappa.hops=all: grappa.correction=none weighs no losses"},
	} {
		s := Settings{Strategy: Grappa, Grappa: c.s}
		err := s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for _, name := range []string{"", Auto, Single, Leap} {
		s := Settings{Strategy: name, Grappa: GrappaSettings{Period: 3}}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "settings of grappa are for {strategy} grappa") {
			t.Errorf("by %q: %v", name, err)
		}
	}
	s := Settings{Strategy: Leap, Grappa: GrappaSettings{Period: 3}}
	if err := s.CheckUse(Leap); err == nil || err.Error() != "{grappa.period}=3 is for {strategy} grappa, and this job's is leap: leave it out, or choose another" {
		t.Error(err)
	}
	if err := s.CheckUse(Auto); err == nil || err.Error() != "{grappa.period}=3 is for {strategy} grappa, which auto never chooses: leave it out, or name the strategy" {
		t.Error(err)
	}
	s = Settings{Strategy: Grappa, Deterministic: true, Grappa: GrappaSettings{Average: 3}}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "grappa.average_every=3: models that update themselves") {
		t.Error(err)
	}
}

func TestGroupsAndShards(t *testing.T) {
	for _, c := range []struct {
		s      GrappaSettings
		shards int
		want   string
	}{
		{GrappaSettings{}, 1, ""},
		{GrappaSettings{Groups: 8}, 8, ""},
		{GrappaSettings{Groups: 9}, 8, "grappa.groups=9: each needs a shard of its own, and the dataset has 8: choose fewer, or import it with more {dataset.shards}"},
		{GrappaSettings{Groups: 4, Swept: 6}, 8, ""},
		{GrappaSettings{Groups: 4, Swept: 7}, 8, "grappa.swept=7: a group has at least 2 of the dataset's 8 shards by itself, and at most 6 are others': choose fewer"},
		{GrappaSettings{Groups: 3, Swept: 6}, 8, ""},
	} {
		if err := c.s.CheckShards(c.shards); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%+v on %d shards: %v", c.s, c.shards, err)
		}
	}
	for shards, want := range map[int]int{1: 1, 3: 3, 4: 4, 64: UsualGroups} {
		if got := (&GrappaSettings{}).GroupsOf(shards); got != want {
			t.Errorf("%d shards are in %d groups", shards, got)
		}
	}
}
