package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestHiddenNodeTakesAgentsFlagsAndItsOwn(t *testing.T) {
	local := echo()
	var told ShapedConfig
	local.Shaped = func(_ context.Context, c ShapedConfig, _, _ io.Writer) error {
		told = c
		return nil
	}
	_, diag, code := hopmesh(t.Context(), local, "bench", "node", "--data-dir", "/d", "--listen", "127.0.0.1:0", "--bootstrap", "--rate", "100000000", "--delay", "2ms")
	if code != 0 || told.DataDir != "/d" || told.Listen != "127.0.0.1:0" || !told.Bootstrap || told.Rate != 100_000_000 || told.Delay != 2*time.Millisecond {
		t.Errorf("%d, %s, %+v", code, diag, told)
	}
	if _, diag, code := hopmesh(t.Context(), local, "bench", "node", "--rate", "fast"); code != 2 || !strings.Contains(diag, "fast") {
		t.Errorf("%d, %s", code, diag)
	}
	out, _, _ := hopmesh(t.Context(), local, "bench", "--help")
	if !strings.Contains(out, "strategies") || strings.Contains(out, "keeps a rate") {
		t.Errorf("benchmarks are\n%s", out)
	}
}

func TestNodesOfStrategies(t *testing.T) {
	for nodes, want := range map[int]int{1: 2, 2: 0, 16: 0, 17: 2} {
		_, diag, code := hopmesh(t.Context(), echo(), "bench", "strategies", "--nodes", fmt.Sprint(nodes))
		if code != want || code == 2 && !strings.Contains(diag, "choose 2 to 16") {
			t.Errorf("%d nodes: %d, %s", nodes, code, diag)
		}
	}
}
