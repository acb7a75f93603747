package output

import (
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
)

func TestStrategyThatWasUsed(t *testing.T) {
	j := clitest.SharedJob()
	for asked, want := range map[string]string{"leap": "leap", "auto": "auto, which was leap in epoch 3"} {
		j.Strategy = asked
		if got := StrategyUsed(j); got != want {
			t.Errorf("%s: %s", asked, got)
		}
	}
}
