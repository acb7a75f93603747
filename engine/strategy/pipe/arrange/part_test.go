package arrange

import (
	"slices"
	"strings"
	"testing"
)

// units are those of a model of nine stages, of which the seventh and the eighth are of one layer.
var units = []int{0, 1, 2, 3, 4, 5, 6, 8, 9}

func TestSchedulesHaveTheArrangement(t *testing.T) {
	tried := Candidates{{Stages: 2, Ways: 3, Cuts: []int{0, 4, 9}, Recomputes: true}, {Stages: 1, Ways: 3, Cuts: []int{0, 9}}}
	own := Candidates{{Stages: 1, Ways: 3, Cuts: []int{0, 9}}, {Stages: 3, Ways: 1, Cuts: []int{0, 1, 2, 9}}, {Stages: 2, Ways: 3, Cuts: []int{0, 3, 9}}}
	if err := own.Follow(tried.Part(), units); err != nil {
		t.Fatal(err)
	}
	if c := &own[0]; c.Stages != 2 || c.Ways != 3 || !slices.Equal(c.Cuts, []int{0, 4, 9}) || !c.Recomputes || own[1].Stages != 1 || own[2].Stages != 3 {
		t.Errorf("the nodes go on with %+v", own)
	}
	for bad, why := range map[string]string{
		``:                                         "can't be read",
		`{"stages":1,"ways":3,"cuts":[0,9]} x`:     "can't be read",
		`{"slots":3}`:                              "can't be read",
		`{"stages":0,"ways":3,"cuts":[0]}`:         "0 stages of 3 ways",
		`{"stages":1,"ways":0,"cuts":[0,9]}`:       "1 stages of 0 ways",
		`{"stages":2,"ways":3,"cuts":[0,9]}`:       "cut at [0 9]",
		`{"stages":2,"ways":3,"cuts":[1,4,9]}`:     "cut at [1 4 9]",
		`{"stages":2,"ways":3,"cuts":[0,10,9]}`:    "cut at [0 10 9]",
		`{"stages":2,"ways":3,"cuts":[0,9,9]}`:     "cut at [0 9 9]",
		`{"stages":2,"ways":3,"cuts":[0,4,8]}`:     "has not considered",
		`{"stages":2,"ways":3,"cuts":[0,7,9]}`:     "has not considered",
		`{"stages":3,"ways":3,"cuts":[0,1,2,9]}`:   "has not considered",
		`{"stages":-1,"ways":3,"cuts":[]}`:         "-1 stages",
		`{"stages":1e9,"ways":3,"cuts":[0,4,9]}`:   "can't be read",
		`{"stages":1,"ways":3,"cuts":[0,9],"x":1}`: "can't be read",
	} {
		if err := own.Follow([]byte(bad), units); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, c := range []struct {
		of   Candidate
		want string
	}{
		{tried[0], "2 stages of 3 ways, cut at the model's parts [4], activations computed again"},
		{tried[1], "1 stage of 3 ways"},
		{own[2], "3 stages of 1 way, cut at the model's parts [1 2]"},
		{Candidate{Stages: 1, Ways: 1, Cuts: []int{0, 9}}, "1 stage of 1 way"},
	} {
		if got, err := Describe(Candidates{c.of}.Part()); got != c.want || err != nil {
			t.Errorf("%q (%v), not %q", got, err, c.want)
		}
	}
}

// FuzzPart: what is followed has as many stages as cuts say, and is written as it was read.
func FuzzPart(f *testing.F) {
	for _, s := range []string{`{"stages":2,"ways":3,"cuts":[0,4,9]}`, `{"stages":1,"ways":1,"cuts":[0,9],"recomputes":true}`, `{"stages":2,"ways":1,"cuts":[0,9,4]}`, `{"stages":0,"ways":1,"cuts":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		own := Candidates{{Stages: 1, Ways: 1, Cuts: []int{0, 9}}, {Stages: 2, Ways: 3, Cuts: []int{0, 3, 9}}}
		if own.Follow(b, units) != nil {
			return
		}
		c := own[0]
		if len(c.Cuts) != c.Stages+1 || c.Cuts[0] != 0 || c.Cuts[c.Stages] != 9 || c.Stages == 2 && (c.Cuts[1] < 1 || c.Cuts[1] > 8 || c.Cuts[1] == 7) {
			t.Fatalf("%s leads to %+v", b, c)
		}
		if err := own.Follow(own.Part(), units); err != nil || own[0].Stages != c.Stages {
			t.Fatalf("%s leads to %+v, and that to %+v (%v)", b, c, own[0], err)
		}
	})
}
