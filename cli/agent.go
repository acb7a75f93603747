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

	"github.com/spf13/cobra"
)

func agent(run func(context.Context, AgentConfig, io.Writer, io.Writer) error) *cobra.Command {
	settings := agentSettings()
	var show bool
	cmd := &cobra.Command{
		Use:   "agent --data-dir DIR [--bootstrap | --join HOST:PORT... --token TOKEN]",
		Short: "Run this machine's node",
		Long: "Runs this machine's node until SIGTERM, which stops it and keeps its place in the mesh.\n\n" +
			"The first node founds the mesh with --bootstrap, and prints the command for the next machines. A node\n" +
			"that was in a mesh before needs neither --join nor --token. Without either, and in no mesh, it waits\n" +
			"for `hopmesh join`.\n\n" +
			"Every setting can be a flag, an environment variable (--data-dir is HOPMESH_DATA_DIR; lists are\n" +
			"separated by commas) or a key in the TOML file given with --config (data-dir = \"...\"). Flags come\n" +
			"before the environment, the environment before the file; --print-config shows what holds and why.",
		Example: "  hopmesh agent --bootstrap\n" +
			"  hopmesh agent --join 10.0.0.1:7946 --token hm1-...\n" +
			"  hopmesh agent --data-dir /srv/hopmesh --memory 64GiB --api 127.0.0.1:7947",
		ValidArgsFunction: cobra.NoFileCompletions,
		// More peers may follow the first without a --join of their own.
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("join") {
				return nil
			}
			return noArgs(cmd, args)
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
				return wrongUsage(cmd, "%v", wrong)
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
	cmd.Flags().BoolVar(&show, "print-config", false, "print every setting with its value and source, and end")
	cmd.Flags().SortFlags = false
	completeFlag(cmd, "device", []string{"auto", "cpu", "cuda"})
	completeFlag(cmd, "log-level", logLevels())
	completeFlag(cmd, "log-format", logFormats())
	return cmd
}

func logFormats() []string { return []string{"text", "json"} }

// agentConfig gives the settings their types. What a node itself must refuse is
// left to it.
func agentConfig(values map[string]value) (AgentConfig, error) {
	cfg := AgentConfig{
		DataDir: values["data-dir"].one(), Name: values["name"].one(),
		Listen: values["listen"].one(), Advertise: values["advertise"].one(), API: values["api"].text,
		Join: values["join"].text, Token: values["token"].one(), Device: values["device"].one(),
		LogLevel: values["log-level"].one(), LogFormat: values["log-format"].one(),
	}
	bad := func(key, why string) error {
		return errConfig{fmt.Errorf("%s (from %s) %s", key, values[key].from, why)}
	}
	var err error
	if cfg.Bootstrap, err = strconv.ParseBool(values["bootstrap"].one()); err != nil {
		return cfg, bad("bootstrap", "must be true or false")
	}
	if memory := values["memory"].one(); memory != "" {
		if cfg.Memory, err = parseSize(memory); err != nil {
			return cfg, bad("memory", err.Error())
		}
	}
	if !devices.MatchString(cfg.Device) {
		return cfg, bad("device", fmt.Sprintf("%q is none of auto, cpu, cuda or cuda:N", cfg.Device))
	}
	if !slices.Contains(logLevels(), cfg.LogLevel) {
		return cfg, bad("log-level", fmt.Sprintf("%q is none of %s", cfg.LogLevel, oneOf(logLevels())))
	}
	if !slices.Contains(logFormats(), cfg.LogFormat) {
		return cfg, bad("log-format", fmt.Sprintf("%q is none of %s", cfg.LogFormat, oneOf(logFormats())))
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
	return table(w, rows...)
}

// devices are those that --device takes.
var devices = regexp.MustCompile(`^(auto|cpu|cuda(:[0-9]+)?)$`)
