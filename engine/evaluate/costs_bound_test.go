package evaluate

import (
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	_ "github.com/hopmesh/hopmesh/engine/nn/hgt"
)

// TestCostsBoundStages holds that no stage takes more than its cost says, also where edges are far
// more than targets.
func TestCostsBoundStages(t *testing.T) {
	for _, heads := range []int{1, 4, 64} {
		s := nn.Defaults("hgt")
		s.Heads = heads
		s.Tell(2, "0,1")
		s.TellStarts("1,0")
		m, err := nn.New(s, 128, 10)
		if err != nil {
			t.Fatal(err)
		}
		for st, stage := range m.Stages() {
			if stage.Hops == 0 {
				continue
			}
			c := costOf(m, st, false, 0)
			for _, z := range []nn.Size{{Sources: 10000, Targets: 10000, Entries: 1000000}, {Sources: 100000, Targets: 1000, Entries: 100000}, {Sources: 30000, Targets: 10000, Entries: 50000}} {
				got := uint64(m.ForecastStage(st, nn.InputSize{Rows: z.Sources}, z))
				if has := c.bytes(uint64(z.Sources), uint64(z.Targets), uint64(z.Entries+z.Targets)) + 1<<12; got > has {
					t.Errorf("%d heads, stage %d, %v: it takes %d bytes and its cost is %d, %.2f times less", heads, st, z, got, has, float64(got)/float64(has))
				}
			}
		}
	}
}
