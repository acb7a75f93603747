package data

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

func TestWhatAVerificationFound(t *testing.T) {
	held := plan.Shard{Holders: []int{0}}
	d := plan.Dataset{Name: "g", Nodes: []string{"a"}, Shards: []plan.Shard{held, held, {}}}
	silent := map[string]error{"nb": errNotAnswering}
	for name, c := range map[string]struct {
		f    *findings
		says []string
	}{
		"nothing was found": {&findings{}, []string{"no copy of shard 0 could be verified", "no copy of shard 1", "shard 2 is gone"}},
		"one is damaged": {
			&findings{whole: map[int]bool{0: true, 1: true, 2: true}, damaged: map[int][]string{1: {"nc", "nb"}}},
			[]string{"dataset g: shard 1 is damaged on nb, nc and is being replaced from a whole copy"},
		},
		"the only copy is damaged": {
			&findings{whole: map[int]bool{0: true, 2: true}, damaged: map[int][]string{1: {"nb"}}},
			[]string{"shard 1 is damaged on nb and there is no whole copy: remove the dataset and import it again"},
		},
		"another node may have it whole": {
			&findings{whole: map[int]bool{0: true, 2: true}, damaged: map[int][]string{1: {"nc"}}, silent: silent},
			[]string{"shard 1 is damaged on nc and no node that answers has a whole copy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.f.verdict(d)
			if refusal, is := errors.AsType[*api.Error](err); !is || refusal.Status != http.StatusConflict {
				t.Fatalf("got %v", err)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
	whole := findings{whole: map[int]bool{0: true, 1: true, 2: true}, silent: silent}
	d.Shards = d.Shards[:2] // the third is lost
	if err := whole.verdict(d); err != nil {
		t.Errorf("got %v", err)
	}
	for shards, says := range map[int]string{20: "and so on for 12 shards more", 9: "and so on for 1 shard more"} {
		many := plan.Dataset{Name: "g", Nodes: []string{"a"}, Shards: make([]plan.Shard, shards)}
		if err := new(findings).verdict(many); err == nil || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("got %v", err)
		}
	}
}

// What goes from the importer to others counts; what stays there does not.
func TestHowMuchIsPlaced(t *testing.T) {
	shard := func(bytes uint64, holders, wanted []int) plan.Shard {
		return plan.Shard{ShardAbout: plan.ShardAbout{Bytes: bytes}, Holders: holders, Wanted: wanted}
	}
	d := plan.Dataset{Nodes: []string{"a", "b", "c"}, Shards: []plan.Shard{
		shard(1, []int{0}, nil), shard(10, []int{0}, []int{1, 0}), shard(100, []int{0, 1}, []int{1, 2}), shard(1000, []int{1}, nil),
	}}
	if p := placed(d, "a"); p.Total != 1210 || p.Done != 1100 {
		t.Errorf("%d of %d bytes", p.Done, p.Total)
	}
}
