package cli

import (
	"os"
	"path/filepath"
	"strings"
)

const defaultListen = "0.0.0.0:7946"

// kind is the shape of a setting's value.
type kind int

const (
	word  kind = iota // one string
	words             // any number of strings
	truth             // true or false
)

// A setting can be given as a flag --key, as HOPMESH_KEY in the environment, and
// as key in the file.
type setting struct {
	key      string
	kind     kind
	usage    string
	fallback string
	secret   bool // not to be shown
}

// env is the setting's name in the environment.
func (s setting) env() string {
	return "HOPMESH_" + strings.ToUpper(strings.ReplaceAll(s.key, "-", "_"))
}

// agentSettings lists all that an agent can be told, in the order of help.
func agentSettings() []setting {
	host, err := os.Hostname()
	if err != nil {
		host = "" // the agent then asks for a name
	}
	return []setting{
		{key: "data-dir", fallback: defaultDataDir(), usage: "`DIR` for all that the node must not forget (default: /var/lib/hopmesh for root, else ~/.local/share/hopmesh)"},
		{key: "name", fallback: host, usage: "the node's `NAME`, unique in its mesh (default: the host's name)"},
		{key: "listen", fallback: defaultListen, usage: "UDP address, `IP:PORT` (default " + defaultListen + ")"},
		{key: "advertise", usage: "`IP:PORT` that others dial (default: the address that routes to the first peer)"},
		{key: "api", kind: words, usage: "where else than at the socket in the data directory to serve the API: an `ADDR`, unix:PATH or HOST:PORT; may be repeated; off loopback only health and metrics"},
		{key: "bootstrap", kind: truth, fallback: "false", usage: "found a mesh; does nothing if the node is in one"},
		{key: "join", kind: words, usage: "`HOST:PORT` of a member to join; may be repeated"},
		{key: "token", secret: true, usage: "the `TOKEN` that lets this node in; only needed with --join"},
		{key: "device", fallback: "auto", usage: "`DEVICE` to compute on: auto, cpu, cuda or cuda:N (default auto)"},
		{key: "memory", usage: "how much memory graphs may take, a `SIZE` such as 64GiB (default: no bound)"},
		{key: "log-level", fallback: "info", usage: "the least `LEVEL` to log: debug, info, warn or error (default info)"},
		{key: "log-format", fallback: "text", usage: "`FORMAT` of the log: text or json (default text)"},
	}
}

// otherEnvironment are the HOPMESH_* names that are no settings of the agent.
func otherEnvironment() []string {
	return []string{"HOPMESH_ADDR", "HOPMESH_CONFIG", "HOPMESH_CPU", "HOPMESH_CUDA", "HOPMESH_LIBCUDA", "HOPMESH_CUBLAS"}
}

// defaultDataDir is where an agent lives that was not told.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/hopmesh"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hopmesh")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "" // the agent then asks for a --data-dir
	}
	return filepath.Join(home, ".local", "share", "hopmesh")
}
