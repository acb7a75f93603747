package p3

import (
	"strings"
	"testing"
)

// No more steps are under way than may be, each is sent once, and what is stopped can be
// sent again.
func TestStepsUnderWayAreBounded(t *testing.T) {
	j := newJob(specs()["gcn"], denseKind, 20)
	j.inflight, j.resample = 2, true
	tb := j.sit(t, 3)
	s := tb.seats[0]
	slots := []*seat{s, s.another(t), s.another(t)}
	for step, o := range slots {
		if err := o.ahead(t.Context(), 1, step, rootsOf(j, step, 17)); err != nil {
			t.Fatal(err)
		}
	}
	for step, want := range []string{"", "", "2 steps are under way, and step 3 would be one too many"} {
		err := slots[step].send(t.Context(), 1, step)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("step %d: %v", step, err)
		}
	}
	if err := s.send(t.Context(), 1, 0); err == nil || !strings.Contains(err.Error(), "step 1 is under way already") {
		t.Error(err)
	}
	if err := s.front.Sums(slots[2].batch); err == nil || !strings.Contains(err.Error(), "step 3 was not sent") {
		t.Error(err)
	}
	s.front.Stop() // nobody offers what it waits for
	for step, o := range slots {
		if o.batch.Sent() {
			t.Errorf("step %d is under way when all has stopped", step)
		}
	}
	if err := slots[2].send(t.Context(), 1, 2); err != nil || slots[2].batch.Version() != 2 {
		t.Error(err)
	}
	s.front.Stop()
}
