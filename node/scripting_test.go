package node

import (
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
)

// Scripts run where the node's user has said so, and on loopback.
func TestWhereScriptsRun(t *testing.T) {
	for _, c := range []struct{ python, listen, want string }{
		{"", "127.0.0.1:0", "python3"},
		{"", "[::1]:7946", "python3"},
		{"", "0.0.0.0:7946", ""},
		{"", "10.0.0.1:7946", ""},
		{"", "localhost:7946", ""},
		{"", "", ""},
		{"off", "127.0.0.1:0", ""},
		{"/opt/python", "0.0.0.0:7946", "/opt/python"},
	} {
		o := Options{Python: c.python, Listen: c.listen}
		if got := o.python(); got != c.want {
			t.Errorf("with %q at %q it is %q and not %q", c.python, c.listen, got, c.want)
		}
	}
}

func TestRunsOfJobs(t *testing.T) {
	for recipe, want := range map[string]string{
		`{"sharing":{"strategy":"program","values":{"program.run":"ab--2"}}}`: "ab--2",
		`{"sharing":{"strategy":"leap"}}`:                                     "",
		`{`:                                                                   "",
	} {
		if got := runOf(&plan.Job{Recipe: recipe}); got != want {
			t.Errorf("%s: %q", recipe, got)
		}
	}
}
