// Package packaging tests the files that packages are made of. What is made of them is
// tested with build tag packages.
package packaging

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/doctor"
	"github.com/hopmesh/hopmesh/node/nodetest"
)

var (
	metric  = regexp.MustCompile(`\b(hopmesh|process|go)_[a-z_]+\b`)
	exposed = regexp.MustCompile(`(?m)^[a-z_]+`)
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metricsOf returns what a node exposes.
func metricsOf(t *testing.T, n *nodetest.Instance) string {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.Options.DataDir, "hopmesh.sock"))
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != 200 {
		t.Fatalf("%d: %v: %s", w.StatusCode, err, b)
	}
	return string(b)
}

// The dashboard and the alerts name metrics that a daemon has while a job trains, and
// nothing else.
func TestMetricsExist(t *testing.T) {
	nodetest.Loopback(t, 1, func(t *testing.T, c *nodetest.Cluster) {
		n := c.Nodes[0]
		quiet := func(api.DatasetEvent) {}
		if _, err := n.API().GenerateDataset(t.Context(), api.GenerateRequest{
			Name: "g", Kind: "sbm", Vertices: 200, Edges: 1000, Features: 4, Classes: 3,
		}, quiet); err != nil {
			t.Fatal(err)
		}
		epochs := 10_000
		id, err := n.API().StartJob(t.Context(), api.TrainRequest{Dataset: "g", Epochs: &epochs})
		if err != nil {
			t.Fatal(err)
		}
		var text string
		c.Wait("an epoch is evaluated and another under way", time.Minute, func() bool {
			text = metricsOf(t, n)
			return strings.Contains(text, "\nhopmesh_job_accuracy{") && strings.Contains(text, "\nhopmesh_training_steps{") && strings.Contains(text, "\nhopmesh_training_loss{")
		})
		if err := n.API().StopJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		has := exposed.FindAllString(text, -1)
		for _, file := range []string{"grafana/dashboard.json", "prometheus/alerts.yml", "prometheus/alerts_test.yml"} {
			names := metric.FindAllString(read(t, file), -1)
			if len(names) < 9 {
				t.Errorf("%s names only %d metrics", file, len(names))
			}
			for _, name := range names {
				if !slices.Contains(has, name) {
					t.Errorf("%s asks for %s, which a daemon does not have", file, name)
				}
			}
		}
	})
}

// Panels have one id each, show something, and read what the page's reader has chosen.
func TestDashboard(t *testing.T) {
	var d struct {
		Panels []struct {
			ID         int
			Type       string
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range d.Panels {
		if seen[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: it has the id of another, or no title", p.ID, p.Title)
		}
		seen[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Targets[0].Expr == "" || p.Datasource.UID != "${source}") {
			t.Errorf("panel %q shows nothing, or not of the chosen source", p.Title)
		}
	}
	if len(d.Panels) < 20 {
		t.Errorf("%d panels only", len(d.Panels))
	}
}

// With the buffers that a package sets, doctor has nothing to say of them.
func TestBuffers(t *testing.T) {
	proc := t.TempDir()
	write := func(name, value string) {
		name = filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kernel/osrelease", "6.1.0")
	for line := range strings.Lines(read(t, "systemd/10-hopmesh.conf")) {
		if key, value, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "#") {
			write(strings.ReplaceAll(key, ".", "/"), strings.TrimSpace(value))
		}
	}
	var out bytes.Buffer
	if err := doctor.Run(t.Context(), doctor.Config{ProcSys: proc, JSON: true}, &out); err != nil {
		t.Fatal(err)
	}
	var found struct{ Findings []doctor.Finding }
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	buffers := 0
	for _, f := range found.Findings {
		if strings.HasPrefix(f.Name, "net.core.") {
			buffers++
			if f.Level != "ok" {
				t.Errorf("%s: %s", f.Name, f.Detail)
			}
		}
	}
	if buffers != 2 {
		t.Errorf("doctor looked at %d buffers", buffers)
	}
}

// Each setting of the file that packages install is one of the agent's, also those that
// are commented out, and none is in force at first.
func TestSettings(t *testing.T) {
	text := read(t, "systemd/hopmesh.toml")
	setting := regexp.MustCompile(`(?m)^#([a-z-]+ = )`)
	if n := len(setting.FindAllString(text, -1)); n < 9 {
		t.Fatalf("found %d settings only", n)
	}
	file := filepath.Join(t.TempDir(), "hopmesh.toml")
	show := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, diag bytes.Buffer
		if code := cli.Execute(t.Context(), cli.New(cli.Local{}, "test"), []string{"agent", "--config", file, "--print-config"}, &out, &diag); code != 0 {
			t.Fatalf("exit code %d: %s", code, diag.String())
		}
		return out.String()
	}
	if got := show(text); strings.Contains(got, file) {
		t.Errorf("something is in force:\n%s", got)
	}
	if got := show(setting.ReplaceAllString(text, "$1")); strings.Count(got, file) < 9 {
		t.Errorf("not all are read:\n%s", got)
	}
}

// The unit lets the agent give its socket to a group: the last filter that names the calls counts.
func TestUnitMayGiveTheSocketToAGroup(t *testing.T) {
	filters := regexp.MustCompile(`(?m)^SystemCallFilter=(.*)$`).FindAllStringSubmatch(read(t, "systemd/hopmesh.service"), -1)
	may := false
	for _, f := range filters {
		switch f[1] {
		case "@system-service", "@chown": // the former has the latter in it
			may = true
		case "~@privileged": // and so has this
			may = false
		default:
			t.Errorf("what does the filter %s mean?", f[1])
		}
	}
	if !may {
		t.Errorf("chown is denied by %q", filters)
	}
}
