package daemon_test

import (
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
