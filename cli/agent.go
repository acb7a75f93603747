package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/cobra"
)

func agent(run func(context.Context, AgentConfig, io.Writer, io.Writer) error) *cobra.Command {
	settings := agentSettings()
	var show bool
	cmd := &cobra.Command{
		Use:   "agent --data-dir DIR [--bootstrap | --join HOST:PORT... --token-file FILE]",
		Short: "Run this machine's node",
		Long: "Runs this machine's node until SIGTERM, which stops it and keeps its place in the mesh.\n\n" +
			"The first node creates the mesh with --bootstrap, and prints the command for the next machines. If its\n" +
			"standard output is the system's journal, the command goes to the file join-command in the data\n" +
			"directory. A node that was in a mesh before needs neither --join nor a token. A new node without them\n" +
			"waits for `hopmesh join`.\n\n" +
			"Every user of a machine can read the command line of a process: put the token into a file, or give\n" +
			"--token-file - and the token on standard input.\n\n" +
			"Every setting can be a flag, an environment variable (--data-dir is HOPMESH_DATA_DIR; lists are\n" +
			"separated by commas) or a key in the TOML file given with --config (data-dir = \"...\"). Flags override\n" +
			"the environment, which overrides the file. --print-config shows each value and where it comes from.",
		Example: "  hopmesh agent --bootstrap\n" +
			"  hopmesh agent --join 10.0.0.1:7946 --token hm1-...\n" +
			"  hopmesh agent --join 10.0.0.1:7946 --token-file /run/hopmesh-token\n" +
			"  hopmesh agent --data-dir /srv/hopmesh --memory 64GiB --api 127.0.0.1:7947",
		ValidArgsFunction: cobra.NoFileCompletions,
		// More peers may follow the first without a --join of their own.
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("join") {
				return nil
			}
			return usage.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			values, err := gather(settings, cmd.Flags(), os.Environ())
			if err == nil {
				join := values["join"]
				join.text = slices.Concat(join.text, args)
				values["join"] = join
			}
			if err == nil && show {
				return printConfig(cmd.OutOrStdout(), settings, values)
			}
			var cfg AgentConfig
			if err == nil {
				cfg, err = agentConfig(values)
			}
			if wrong, ok := errors.AsType[errConfig](err); ok {
				return usage.Errorf(cmd, "%v", wrong)
			}
			if err != nil {
				return err
			}
			return run(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	for _, s := range settings {
		switch s.kind {
		case word:
			cmd.Flags().String(s.key, "", s.usage)
		case words:
			cmd.Flags().StringSlice(s.key, nil, s.usage)
		case truth:
			cmd.Flags().Bool(s.key, false, s.usage)
		}
	}
	cmd.Flags().String("config", "", "read settings from a TOML `FILE` (default: $HOPMESH_CONFIG)")
	cmd.Flags().BoolVar(&show, "print-config", false, "print every setting with its value and source, and exit")
	cmd.Flags().SortFlags = false
	usage.CompleteFlag(cmd, "device", []string{"auto", "cpu", "cuda"})
	usage.CompleteFlag(cmd, "log-level", logLevels())
	usage.CompleteFlag(cmd, "log-format", logFormats())
	return cmd
}

func logFormats() []string { return []string{"text", "json"} }

// agentConfig converts settings to their types. The node itself checks what is left.
func agentConfig(values map[string]value) (AgentConfig, error) {
	cfg := AgentConfig{
		DataDir: values["data-dir"].one(), Name: values["name"].one(),
		Listen: values["listen"].one(), Advertise: values["advertise"].one(), API: values["api"].text, APIGroup: values["api-group"].one(),
		Join: values["join"].text, Token: values["token"].one(), TokenFile: values["token-file"].one(), Device: values["device"].one(),
		LogDir: values["logdir"].one(), Python: values["python"].one(), LogLevel: values["log-level"].one(), LogFormat: values["log-format"].one(),
	}
	bad := func(key, why string) error {
		return errConfig{fmt.Errorf("%s (from %s) %s", key, values[key].from, why)}
	}
	if values["name"].from == byDefault {
		cfg.Name = "" // the node takes the host's, or one like it
	}
	var err error
	if cfg.Bootstrap, err = strconv.ParseBool(values["bootstrap"].one()); err != nil {
		return cfg, bad("bootstrap", "must be true or false")
	}
	if memory := values["memory"].one(); memory != "" {
		if cfg.Memory, err = output.ParseSize(memory); err != nil {
			return cfg, bad("memory", err.Error())
		}
	}
	if cfg.Token != "" && cfg.TokenFile != "" {
		return cfg, bad("token-file", fmt.Sprintf("is given and so is token (from %s): leave one of them out", values["token"].from))
	}
	if !devices.MatchString(cfg.Device) {
		return cfg, bad("device", fmt.Sprintf("%q is none of auto, cpu, cuda or cuda:N", cfg.Device))
	}
	if !slices.Contains(logLevels(), cfg.LogLevel) {
		return cfg, bad("log-level", fmt.Sprintf("%q is none of %s", cfg.LogLevel, usage.OneOf(logLevels())))
	}
	if !slices.Contains(logFormats(), cfg.LogFormat) {
		return cfg, bad("log-format", fmt.Sprintf("%q is none of %s", cfg.LogFormat, usage.OneOf(logFormats())))
	}
	return cfg, nil
}

func printConfig(w io.Writer, settings []setting, values map[string]value) error {
	rows := [][]string{{"KEY", "VALUE", "SOURCE"}}
	for _, s := range settings {
		v := values[s.key]
		text := v.one()
		if s.secret && text != "" {
			text = "(hidden)"
		}
		rows = append(rows, []string{s.key, text, v.from})
	}
	return output.Table(w, rows...)
}

// devices matches the values of --device.
var devices = regexp.MustCompile(`^(auto|cpu|cuda(:[0-9]+)?)$`)

const defaultListen = "0.0.0.0:7946"

// kind is the type of a setting's value.
type kind int

const (
	word  kind = iota // one string
	words             // any number of strings
	truth             // true or false
)

// setting is one setting of the agent: the flag --key, HOPMESH_KEY in the environment, and key
// in the file.
type setting struct {
	key      string
	kind     kind
	usage    string
	fallback string
	secret   bool // not printed
}

// env returns the setting's name in the environment.
func (s setting) env() string {
	return "HOPMESH_" + strings.ToUpper(strings.ReplaceAll(s.key, "-", "_"))
}

// agentSettings lists the settings of an agent in the order of its help.
func agentSettings() []setting {
	host, err := os.Hostname()
	if err != nil {
		host = "" // the agent then asks for a name
	}
	return []setting{
		{key: "data-dir", fallback: daemon.DataDir(), usage: "`DIR` for the node's state (default: /var/lib/hopmesh for root, else ~/.local/share/hopmesh)"},
		{key: "name", fallback: host, usage: "the node's `NAME`, unique in its mesh (default: the host's name, with a number if another node has it)"},
		{key: "listen", fallback: defaultListen, usage: "UDP address, `IP:PORT` (default " + defaultListen + ")"},
		{key: "advertise", usage: "`IP:PORT` that others dial (default: the address that routes to the first peer)"},
		{key: "api", kind: words, usage: "another `ADDR` to serve the API at, beside the socket in the data directory: unix:PATH, HOST:PORT or https://HOST:PORT; may be repeated; off loopback HOST:PORT has only health and metrics, and https:// needs tokens"},
		{key: "api-group", usage: "the `GROUP` of this machine whose users may use the API's sockets, too (default: only the user that runs the agent)"},
		{key: "bootstrap", kind: truth, fallback: "false", usage: "create a mesh; ignored if the node is in one"},
		{key: "join", kind: words, usage: "`HOST:PORT` of a member to join; may be repeated"},
		{key: "token", secret: true, usage: "the join `TOKEN`; only needed with --join"},
		{key: "token-file", usage: "a `FILE` with the join token, or - for standard input; read only if this node is in no mesh yet"},
		{key: "device", fallback: "auto", usage: "`DEVICE` to compute on: auto, cpu, cuda or cuda:N (default auto)"},
		{key: "memory", usage: "limit of the memory that the node takes, a `SIZE` such as 64GiB (default: what the machine can give)"},
		{key: "logdir", usage: "write the epochs of all jobs of the mesh to this `DIR` for TensorBoard; one node with it is enough"},
		{key: "python", usage: "the `PROGRAM` that runs scripts of `hopmesh run` beside this node, as its user, for whoever may have them run on a member; or off (default: python3 if --listen is on loopback, else off)"},
		{key: "log-level", fallback: "info", usage: "the lowest `LEVEL` to log: debug, info, warn or error (default info)"},
		{key: "log-format", fallback: "text", usage: "`FORMAT` of the log: text or json (default text)"},
	}
}

// otherEnvironment lists the HOPMESH_* variables that are not settings of the agent.
func otherEnvironment() []string {
	return []string{"HOPMESH_ADDR", "HOPMESH_API_TOKEN", "HOPMESH_API_TOKEN_FILE", "HOPMESH_CONFIG", "HOPMESH_CPU", "HOPMESH_CUDA", "HOPMESH_LIBCUDA", "HOPMESH_CUBLAS"}
}
