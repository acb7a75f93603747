package daemon_test

import (
	"crypto/sha256"
	"encoding/base32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/spf13/cobra"
)

func TestWhereTheDaemonIs(t *testing.T) {
	b := clitest.Healthy()
	addr := clitest.Serve(t, b)
	dir := filepath.Dir(strings.TrimPrefix(addr, "unix:"))
	for name, c := range map[string]struct {
		flag, env, dir string
		want           string
	}{
		"flag":              {"unix:/f", "unix:/e", "/d", "unix:/f"},
		"environment":       {"", "unix:/e", "/d", "unix:/e"},
		"the agent's place": {"", "", dir, "unix:" + dir + "/hopmesh.sock"},
		"default":           {"", "", "", "unix:" + filepath.Join(daemon.DataDir(), "hopmesh.sock")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOPMESH_ADDR", c.env)
			t.Setenv("HOPMESH_DATA_DIR", c.dir)
			client, err := (&daemon.Flags{Addr: c.flag}).Client(&cobra.Command{Use: "members"})
			if err != nil || client.Addr() != c.want {
				t.Errorf("%v, %v; want %s", client.Addr(), err, c.want)
			}
		})
	}
}

func TestDefaultDataDir(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "/x")
	t.Setenv("HOME", "/home/u")
	want := "/x/hopmesh"
	if os.Geteuid() == 0 {
		want = "/var/lib/hopmesh"
	}
	if got := daemon.DataDir(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Who names no daemon means that of this user, and the system's where this user has none.
func TestTheSystemsDaemonIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		own, system string // what is there: nothing, a folder, a socket
		systems     bool
	}{
		"none":               {"", "", false},
		"a folder of each":   {"folder", "folder", false},
		"the user's":         {"socket", "", false},
		"both":               {"socket", "socket", false},
		"the system's":       {"", "socket", true},
		"the user's is down": {"folder", "socket", true},
	} {
		own, system := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "system")
		for dir, what := range map[string]string{own: c.own, system: c.system} {
			if what != "" {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if what == "socket" {
				if err := os.WriteFile(filepath.Join(dir, "hopmesh.sock"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := own
		if c.systems {
			want = system
		}
		if got := daemon.Nearest(own, system); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A command that asks twice, as `train start --watch` does, finds the token only once on standard
// input.
func TestTokenOnStandardInputIsReadOnce(t *testing.T) {
	b := make([]byte, 52)
	sum := sha256.Sum256(append([]byte("hma1-"), b...))
	token := "hma1-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(append(b, sum[:2]...)))
	cmd := &cobra.Command{Use: "start"}
	cmd.SetContext(t.Context())
	cmd.SetIn(strings.NewReader(token + "\n"))
	d := daemon.Flags{Addr: "https://127.0.0.1:1", TokenFile: "-"}
	for n := range 2 {
		c, err := d.Client(cmd)
		if err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
		c.Close()
	}
}
