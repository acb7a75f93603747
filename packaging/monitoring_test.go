//go:build packages

package packaging

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/nodetest"
)

// promtool runs promtool in the folder of the rules, and returns what it prints.
func promtool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "PROMTOOL"), args...)
	cmd.Dir, cmd.Stdin = "prometheus", strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v:\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The alerts are valid, fire when they should and at no other time.
func TestAlerts(t *testing.T) {
	if out := promtool(t, "", "check", "rules", "alerts.yml"); !strings.Contains(out, "9 rules found") {
		t.Errorf("%s", out)
	}
	promtool(t, "", "test", "rules", "alerts_test.yml")
	tests := read(t, filepath.Join("prometheus", "alerts_test.yml"))
	for line := range strings.Lines(read(t, filepath.Join("prometheus", "alerts.yml"))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok && strings.Count(tests, name) < 2 {
			t.Errorf("no test has alert %s both fire and stay silent", name)
		}
	}
}

// Prometheus has nothing to say of the metrics of a daemon.
func TestMetricsAreClean(t *testing.T) {
	nodetest.Loopback(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		text := ""
		c.Wait("the node has its metrics", time.Minute, func() bool {
			text = metricsOf(t, c.Nodes[0])
			return strings.Contains(text, "\nhopmesh_generation ")
		})
		if out := promtool(t, text, "check", "metrics"); out != "" {
			t.Errorf("promtool check metrics: %s", out)
		}
	})
}
