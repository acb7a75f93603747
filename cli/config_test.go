package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/cli/daemon"
)

// clean removes what the machine's own environment says.
func clean(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "HOPMESH_") {
			t.Setenv(name, "") // so that it is restored
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hopmesh.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// agentConfigOf runs `hopmesh agent` and returns what it passed on.
func agentConfigOf(t *testing.T, args ...string) (cfg AgentConfig, stderr string, code int) {
	t.Helper()
	local := echo()
	local.Agent = capture(&cfg)
	_, stderr, code = hopmesh(t.Context(), local, append([]string{"agent"}, args...)...)
	return cfg, stderr, code
}

func TestLayers(t *testing.T) {
	clean(t)
	file := write(t, "# ours\n\nname = \"file\"\nlisten = \"10.0.0.1:1\"\napi = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nbootstrap = true\nmemory = 1024\nlog-level = \"warn\"\ndevice = \"cpu\"\n")
	t.Setenv("HOPMESH_NAME", "env")
	t.Setenv("HOPMESH_LISTEN", "10.0.0.2:2")
	t.Setenv("HOPMESH_JOIN", "a:1, b:2")
	t.Setenv("HOPMESH_LOGDIR", "/logs")
	t.Setenv("HOPMESH_LOG_LEVEL", "") // as if it were not set
	t.Setenv("HOPMESH_CUDA", "off")   // not the agent's
	got, stderr, code := agentConfigOf(t, "--config", file, "--name", "flag", "--data-dir", "/d")
	want := AgentConfig{
		DataDir: "/d", Name: "flag", Listen: "10.0.0.2:2", API: []string{"127.0.0.1:1", "127.0.0.1:2"}, Bootstrap: true,
		Join: []string{"a:1", "b:2"}, Device: "cpu", Memory: 1024, LogDir: "/logs", LogLevel: "warn", LogFormat: "text",
	}
	if code != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v (%d %s)", got, want, code, stderr)
	}
}

func TestPrintConfig(t *testing.T) {
	clean(t)
	file := write(t, "log-format = \"json\"\n\n\nmemory = \"64GiB\"\n")
	t.Setenv("HOPMESH_DEVICE", "cuda:1")
	out, stderr, code := hopmesh(t.Context(), echo(), "agent", "--print-config", "--config", file,
		"--data-dir", "/d", "--name", "n", "--join", "a:1", "b:2", "--join", "c:3,d:4", "--token", "hm1-secret")
	want := `KEY         VALUE               SOURCE
data-dir    /d                  flag --data-dir
name        n                   flag --name
listen      0.0.0.0:7946        default
advertise   -                   default
api         -                   default
api-group   -                   default
bootstrap   false               default
join        a:1, c:3, d:4, b:2  flag --join
token       (hidden)            flag --token
token-file  -                   default
device      cuda:1              environment HOPMESH_DEVICE
memory      64GiB               FILE, line 4
logdir      -                   default
python      -                   default
log-level   info                default
log-format  json                FILE, line 1
`
	if got := strings.ReplaceAll(out, file, "FILE"); got != want || code != 0 {
		t.Errorf("%d %s\n%s", code, stderr, got)
	}
}

func TestConfigFileFromEnvironment(t *testing.T) {
	clean(t)
	t.Setenv("HOPMESH_CONFIG", write(t, "name = \"file\""))
	if cfg, stderr, code := agentConfigOf(t); code != 0 || cfg.Name != "file" {
		t.Errorf("%+v %d %s", cfg, code, stderr)
	}
}

func TestDefaults(t *testing.T) {
	clean(t)
	got, _, code := agentConfigOf(t)
	// Without a name: the node takes the host's, or one like it.
	want := AgentConfig{DataDir: daemon.DataDir(), Listen: "0.0.0.0:7946", Device: "auto", LogLevel: "info", LogFormat: "text"}
	if code != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWrongConfig(t *testing.T) {
	for name, c := range map[string]struct {
		args, env, file string
		code            int
		says            []string
	}{
		"an unknown key":         {file: "name = \"x\"\ndata_dir = \"/d\"\n", code: 2, says: []string{"data_dir", "FILE, line 2", "did you mean data-dir"}},
		"an unknown table":       {file: "name = \"x\"\n\n[training]\nepochs = 3\n", code: 2, says: []string{"training", "FILE, line 3"}},
		"a dotted key":           {file: "log.level = \"x\"\n", code: 2, says: []string{"log.level", "FILE, line 1", "did you mean log-level"}},
		"no TOML":                {file: "name = \n", code: 2, says: []string{"FILE, line 1"}},
		"a key twice":            {file: "name = \"a\"\nname = \"b\"\n", code: 2, says: []string{"FILE, line 2", "name"}},
		"a wrong type":           {file: "\nname = 3\n", code: 2, says: []string{"FILE, line 2", "name must be a string"}},
		"a list of numbers":      {file: "join = [1]\n", code: 2, says: []string{"FILE, line 1", "join must be a list of strings"}},
		"truth as a word":        {file: "bootstrap = \"yes\"\n", code: 2, says: []string{"FILE, line 1", "bootstrap must be true or false"}},
		"an unknown variable":    {env: "HOPMESH_DATADIR", code: 2, says: []string{"HOPMESH_DATADIR", "did you mean HOPMESH_DATA_DIR"}},
		"a bad size":             {args: "--memory 64GX", code: 2, says: []string{"flag --memory", `"64GX"`, "64GiB"}},
		"a bad size in the file": {file: "memory = -1\n", code: 2, says: []string{"FILE, line 1", "memory"}},
		"a bad device":           {args: "--device gpu", code: 2, says: []string{"flag --device", "cuda:N"}},
		"a bad level":            {env: "HOPMESH_LOG_LEVEL", code: 2, says: []string{"environment HOPMESH_LOG_LEVEL", "debug"}},
		"a bad truth":            {env: "HOPMESH_BOOTSTRAP", code: 2, says: []string{"environment HOPMESH_BOOTSTRAP", "true or false"}},
		"a bad format":           {args: "--log-format xml", code: 2, says: []string{"flag --log-format", "text or json"}},
		"a file that is not":     {args: "--config /nonexistent/c.toml", code: 1, says: []string{"/nonexistent/c.toml", "no such file"}},
		"a loose argument":       {args: "10.0.0.1:7946", code: 2, says: []string{"10.0.0.1:7946"}},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			args := strings.Fields(c.args)
			file := ""
			if c.file != "" {
				file = write(t, c.file)
				args = append(args, "--config", file)
			}
			if c.env != "" {
				t.Setenv(c.env, "nonsense")
			}
			_, stderr, code := agentConfigOf(t, args...)
			if file != "" {
				stderr = strings.ReplaceAll(stderr, file, "FILE")
			}
			if code != c.code || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, want %d: %s", code, c.code, stderr)
			}
			for _, want := range c.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in %q", want, stderr)
				}
			}
		})
	}
}

// FuzzFile reads arbitrary config files: what is accepted is made of settings
// that exist, and each mistake has a place.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"name = \"x\"", "api = [\"a\", 'b']\nbootstrap = true", "[a]\nb = 1", "a.b = 1", "memory = 0x10", "join = [[]]", "name = 1979-05-27", "\"\" = 1", "[[api]]\nx=1", "x = {}\n", "=", "\xff"} {
		f.Add([]byte(s))
	}
	settings := agentSettings()
	f.Fuzz(func(t *testing.T, b []byte) {
		values, err := parseFile(settings, "FILE", b)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "FILE") {
				t.Errorf("no place in %q", err)
			}
			return
		}
		for key := range values {
			if !strings.Contains(string(b), key) {
				t.Errorf("%q out of %q", key, b)
			}
		}
	})
}

// capture keeps what an agent was told, and runs none.
func capture(to *AgentConfig) func(context.Context, AgentConfig, io.Writer, io.Writer) error {
	return func(_ context.Context, cfg AgentConfig, _, _ io.Writer) error {
		*to = cfg
		return nil
	}
}
