package plan

import (
	"slices"
	"strings"
	"testing"
)

// Of nodes that can't reach each other the fewest are left out, if the others have all
// that the job needs.
func TestLeaveOut(t *testing.T) {
	for _, c := range []struct {
		nodes, replicas int
		cuts, down      string
		want            string
	}{
		{3, 1, "bc", "", "c"},
		{3, 1, "cb bc cb", "", "c"},
		{3, 1, "ab", "", "b"},
		{3, 1, "ab ac", "", "a"}, // the first, if that is it
		{3, 1, "", "", ""},
		{3, 1, "aa ax xy", "", ""}, // others have no part in it
		{3, 0, "bc", "", ""},       // nobody else has their shards
		{4, 3, "ab cd", "", "db"},
		{4, 3, "ab ac ad bc bd cd", "", "dcb"},
		{4, 1, "ab ac ad bc bd cd", "", ""}, // one alone has not all shards
		{3, 1, "bc", "a", ""},
	} {
		w, id := ready(t, c.nodes, c.replicas)
		for n := range strings.SplitSeq(c.down, "") {
			w.down(n)
		}
		var cuts []Cut
		for pair := range strings.FieldsSeq(c.cuts) {
			cuts = append(cuts, Cut{pair[:1], pair[1:]})
		}
		before := slices.Clone(cuts)
		got := LeaveOut(w.state, id, cuts, w.serves)
		if strings.Join(got, "") != c.want || !slices.Equal(cuts, before) {
			t.Errorf("%d nodes, %d copies, cut %q, down %q: %q is left out, not %q", c.nodes, c.replicas, c.cuts, c.down, got, c.want)
		}
	}
}

// Who has what the job has learnt is not left out alone.
func TestLeaveOutKeepsWhatIsLearnt(t *testing.T) {
	w, id := ready(t, 3, 1)
	j := w.job(id)
	j.Keepers = []string{"c"}
	w.state.Jobs[id] = j
	if got := LeaveOut(w.state, id, []Cut{{"b", "c"}}, w.serves); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
	w.end(id, Stopped)
	if got := LeaveOut(w.state, id, []Cut{{"b", "c"}}, w.serves); got != nil {
		t.Errorf("of a job that has ended: %q", got)
	}
	if got := LeaveOut(w.state, "j9", []Cut{{"b", "c"}}, w.serves); got != nil {
		t.Errorf("of no job: %q", got)
	}
}
