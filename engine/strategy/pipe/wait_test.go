package pipe

import (
	"testing"
	"testing/synctest"
	"time"
)

// Where nothing but one stage takes time, the others wait for as long as that.
func TestWaits(t *testing.T) {
	for _, refresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, sizes, anywhere)
			s := newSetup(deep("gcn", 3), 2, 1, 6)
			s.Refresh = refresh
			j := w.start(t, s)
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
}
