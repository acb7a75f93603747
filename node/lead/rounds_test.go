package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

var discard = slog.New(slog.DiscardHandler)

func TestRoundsDoWhatTheyCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := func() *plan.State { return &plan.State{MeshID: "m"} }
		r := NewRounds(discard)
		done := make(chan struct{})
		var did []int
		step := func(n int, err error) Step {
			return func(context.Context, *plan.State) error { did = append(did, n); return err }
		}
		go func() {
			r.Round(t.Context())
			close(done)
		}()
		synctest.Wait()
		r.Begin(state, step(1, nil), step(2, errors.New("a node is away")), step(3, nil), step(4, consensus.ErrNotLeader), step(5, nil))
		<-done
		if fmt.Sprint(did) != "[1 2 3 4]" {
			t.Errorf("did %v", did)
		}
	})
}

func TestAbsencesAreOfOneTerm(t *testing.T) {
	term, alive, known := uint64(1), false, time.Duration(0)
	a := NewAbsences(func() uint64 { return term }, func(string) (bool, time.Duration) { return alive, known })
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		do    func()
		want  time.Duration
	}{
		{0, func() {}, 1},
		{5 * time.Second, func() {}, 5 * time.Second},
		{6 * time.Second, func() { known = time.Minute }, time.Minute}, // gossip has seen it go before
		{7 * time.Second, func() { known, term = 0, 2 }, 1},
		{8 * time.Second, func() { alive = true }, 0},
		{9 * time.Second, func() { alive = false }, 1},
	} {
		c.do()
		if got := a.Of("x", now.Add(c.after)); got != c.want {
			t.Errorf("after %s: %s, not %s", c.after, got, c.want)
		}
	}
}
