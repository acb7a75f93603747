package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/mesh"
)

// machine makes the settings that the kernel would show.
func machine(t *testing.T, release, rmem, wmem string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"kernel/osrelease": release, "net/core/rmem_max": rmem, "net/core/wmem_max": wmem} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if value == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func findings(t *testing.T, cfg Config) (map[string]Finding, error) {
	t.Helper()
	var out bytes.Buffer
	cfg.JSON, cfg.Version = true, "v1"
	err := Run(t.Context(), cfg, &out)
	var got struct{ Findings []Finding }
	if e := json.Unmarshal(out.Bytes(), &got); e != nil {
		t.Fatalf("printed %q: %v", out.String(), e)
	}
	by := map[string]Finding{}
	for _, f := range got.Findings {
		by[f.Name] = f
	}
	return by, err
}

func TestMachine(t *testing.T) {
	good, err := findings(t, Config{ProcSys: machine(t, "6.1.0", "7500000", "8000000")})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range good {
		if f.Level != ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
	bad, err := findings(t, Config{ProcSys: machine(t, "4.19.0", "212992", "")})
	if err != nil {
		t.Fatalf("warnings are no failures: %v", err)
	}
	for name, want := range map[string]string{"kernel": "Linux 5", "net.core.rmem_max": "sysctl -w net.core.rmem_max=7500000", "net.core.wmem_max": "can't be read"} {
		if f := bad[name]; f.Level != warning || !strings.Contains(f.Detail, want) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestPeerThatIsNotThere(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	got, err := findings(t, Config{ProcSys: machine(t, "6.1", "7500000", "7500000"), Peer: silent.LocalAddr().String()})
	if !errors.Is(err, ErrFailure) {
		t.Errorf("ended with %v", err)
	}
	if f := got["way there"]; f.Level != failure || !strings.Contains(f.Detail, silent.LocalAddr().String()) {
		t.Errorf("%+v", f)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), Config{ProcSys: machine(t, "6.1", "7500000", "100")}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "warning  net.core.wmem_max") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestPacketSizes(t *testing.T) {
	for _, c := range []struct {
		reach mesh.Reach
		level string
		says  string
	}{
		{mesh.Reach{Passed: mesh.MostPacket}, ok, "1452"},
		{mesh.Reach{Passed: 1252, Lost: 1352}, warning, "MTU of the path is below 1380"},
		{mesh.Reach{}, warning, "not known"},
	} {
		if f := packets(c.reach); f.Level != c.level || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%+v: %+v", c.reach, f)
		}
	}
}

func TestVersions(t *testing.T) {
	nine, own := mesh.Range{Min: 9, Max: 9}, mesh.Numbers{Computing: mesh.Range{Min: recipe.Computing, Max: recipe.Computing}}
	for _, c := range []struct {
		version string
		numbers mesh.Numbers
		level   string
		says    string
	}{
		{"v1", own, ok, "v1"},
		{"v2", own, ok, "v2, here v1: they work together"},
		{"v9", mesh.Numbers{Computing: nine}, warning, fmt.Sprintf("v9, which computes by 9, here v1, which computes by %d", recipe.Computing)},
		{"v9", mesh.Numbers{Wire: nine}, failure, "runs hopmesh v9, which speaks 9 on the wire, and this node runs hopmesh v1, which speaks 1: install"},
	} {
		level, detail := versions(mesh.ProbeReply{Version: c.version, Numbers: c.numbers}, "v1")
		if level != c.level || !strings.Contains(detail, c.says) {
			t.Errorf("%+v: %s, %s", c, level, detail)
		}
	}
}
