package auto_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// strategiesOf lists by what each epoch was trained.
func strategiesOf(epochs []trained.Epoch) (all []string) {
	for _, e := range epochs {
		all = append(all, e.Strategy)
	}
	return all
}

// What the nodes choose is agreed on before they train by it, and what they change to a whole
// epoch ahead. Who repeats the run repeats the choice, whatever would be chosen now.
func TestAChoiceIsInTheSchedule(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	r := automatic()
	_, one := traintest.MustRun(t, r, shards, train.Options{Threads: 1})
	run := func(b *traintest.Board, perRow time.Duration) (all []string) {
		synctest.Test(t, func(t *testing.T) {
			m := traintest.NewMesh(3, lopsided(len(shards), 3))
			slowRows(m, perRow)
			_, reports := m.MustRun(t, r, shards, train.Options{Threads: 1, Schedule: b})
			all = strategiesOf(reports[0])
			for node := range reports {
				if traintest.Learnt(reports[node]) != traintest.Learnt(one) || !slices.Equal(strategiesOf(reports[node]), all) {
					t.Errorf("node %d trains by %v\n%s\nand one node learns\n%s", node, strategiesOf(reports[node]), traintest.Learnt(reports[node]), traintest.Learnt(one))
				}
			}
			for i, e := range reports[2] {
				if want, known := b.At(i+1, r.Rate); !known || e.Strategy != want.Strategy || e.Why != want.Why {
					t.Errorf("epoch %d is trained by %s (%s), and the schedule has %+v", i+1, e.Strategy, e.Why, want)
				}
			}
		})
		return all
	}
	b := new(traintest.Board)
	chosen := run(b, time.Millisecond)
	from := b.Proposed()
	if len(from) != 2 || from[0] != 1 || from[1] < 3 || chosen[0] != "centric" || chosen[from[1]-2] != "centric" || chosen[from[1]-1] != "leap" {
		t.Fatalf("the nodes propose entries from %v on, and train by %v", from, chosen)
	}
	if why := b.Entries[1].Why; !strings.HasPrefix(why, "leap since epoch ") || !strings.Contains(why, "centric") {
		t.Error(why)
	}
	again := &traintest.Board{Entries: slices.Clone(b.Entries)}
	if got := run(again, 0); !slices.Equal(got, chosen) || len(again.Proposed()) > 0 {
		t.Errorf("again the nodes train by %v, not %v, and propose entries from %v on", got, chosen, again.Proposed())
	}
}
