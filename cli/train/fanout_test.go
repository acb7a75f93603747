package train

import (
	"reflect"
	"strings"
	"testing"
)

func TestFanout(t *testing.T) {
	for s, want := range map[string]struct {
		all  []int
		each map[string][]int
	}{
		"": {}, "full": {}, "25, 10": {all: []int{25, 10}}, "5,full": {all: []int{5, 0}},
		"cites=10/5":                  {each: map[string][]int{"cites": {10, 5}}},
		"4,3,cites=10/5,a=b-c-d=1":    {all: []int{4, 3}, each: map[string][]int{"cites": {10, 5}, "a=b-c-d": {1}}},
		"paper-rev-writes-author=2/2": {each: map[string][]int{"paper-rev-writes-author": {2, 2}}},
	} {
		all, each, err := fanout(s)
		if err != nil || !reflect.DeepEqual(all, want.all) || !reflect.DeepEqual(each, want.each) {
			t.Errorf("%q: %v, %v, %v", s, all, each, err)
		}
	}
	for s, want := range map[string]string{
		"25,0": "is neither full nor a list", "cites": "is neither full nor a list", "=5": "is neither full nor a list",
		"cites=": "no number of neighbours for each hop of the relation cites", "cites=5/full": "such as cites=20/10", "cites=5/0": "such as cites=20/10",
		"cites=5,cites=6": "names the relation cites twice",
	} {
		if _, _, err := fanout(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}
