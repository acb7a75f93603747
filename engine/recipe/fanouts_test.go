package recipe_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
)

func TestFanoutsByRelation(t *testing.T) {
	typed := usual
	typed.Relations = 2
	fresh := func() recipe.Recipe {
		r := recipe.DefaultRecipe("rgcn")
		r.Model.Tell(2, "")
		if err := r.FanEach([][]int{{10, 5}, {3, 1}}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := fresh()
	if err := r.Check(typed, strategies.All); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(r.Fanouts, []int{13, 6}) || !reflect.DeepEqual(r.Each, [][]int{{10, 3}, {5, 1}}) {
		t.Errorf("%v, of each hop %v", r.Fanouts, r.Each)
	}
	for want, change := range map[string]func(*recipe.Recipe){
		"a sage does not tell them apart": func(r *recipe.Recipe) {
			of := recipe.DefaultRecipe("sage")
			of.Fanouts, of.Each = r.Fanouts, r.Each
			*r = of
		},
		"has numbers for relations of 1 hop and sums of 2":     func(r *recipe.Recipe) { r.Each = r.Each[:1] },
		"relations of 2 hops and sums of 0":                    func(r *recipe.Recipe) { r.Fanouts = nil },
		"has 0 for a relation":                                 func(r *recipe.Recipe) { r.Each[1] = []int{6, 0} },
		"add up to 7, and the model tells 2 apart and draws 6": func(r *recipe.Recipe) { r.Each[1] = []int{6, 1} },
		"numbers for 1 relation that add up to 6":              func(r *recipe.Recipe) { r.Each[1] = []int{6} },
	} {
		r := fresh()
		change(&r)
		err := r.Check(typed, strategies.All)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, of := range [][][]int{{{10, 5}, {3, 0}}, {{math.MaxInt32, 1}, {1, 1}}} {
		if err := r.FanEach(of); err == nil {
			t.Errorf("%v is taken", of)
		}
	}
}
