package pipe

import (
	"testing"
	"testing/synctest"
	"time"
)

// Where nothing but one stage takes time, the others wait for as long as that.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, sizes, anywhere)
		j := w.start(t, newSetup(deep("gcn", 3), 2, 1, 6))
		slow, fast := j.nodes[0], j.nodes[1]
		if slow.stage != 0 {
			slow, fast = fast, slow
		}
		slow.trace = func(event, int) { time.Sleep(time.Second) }
		for epoch := 1; epoch < 3; epoch++ {
			j.epoch(t, epoch)
			// It goes forward for six seconds, then back for as many.
			if forward, back := fast.Waited(), slow.Waited(); forward != 12*time.Second || back != 0 {
				t.Errorf("epoch %d: the stages wait for %v and %v", epoch, back, forward)
			}
		}
	})
}

// Where each position takes each stage one turn, a stage begins one turn after the one
// before it, and has something to do in each from then on; backward, in reverse.
func TestTurns(t *testing.T) {
	for _, stages := range []int{1, 2, 3, 4} {
		for _, positions := range []int{1, 2, 5} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, sizes, anywhere)
				j := w.start(t, newSetup(deep("gcn", 4), stages, 1, positions))
				begin := time.Now()
				turns := positions + stages - 1
				for _, n := range j.nodes {
					done := 0
					n.trace = func(e event, place int) {
						want := n.stage + place
						if e == backwardDone {
							want = 2*turns - 1 - want
						}
						if turn := time.Since(begin); turn != time.Duration(want)*time.Second {
							t.Errorf("%d stages, %d positions: stage %d is at place %d after %v, want %d turns", stages, positions, n.stage, place, turn, want)
						}
						done++
						time.Sleep(time.Second)
					}
					defer func() {
						if done != 2*positions {
							t.Errorf("stage %d did %d of %d", n.stage, done, 2*positions)
						}
					}()
				}
				j.epoch(t, 1)
				if took := time.Since(begin); took != time.Duration(2*turns)*time.Second {
					t.Errorf("%d stages, %d positions: an epoch takes %v, want %d turns", stages, positions, took, 2*turns)
				}
			})
		}
	}
}
