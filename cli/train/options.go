package train

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

// Option is one setting of `train start --set`.
type Option struct {
	Key     string `json:"key"`
	Applies string `json:"applies"` // models between commas, a strategy, "strategies" or "train"; "": all models
	Values  string `json:"values"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

func options(all func() []Option, strategies []string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "options [STRATEGY|MODEL]",
		Short: "List the settings of `train start --set`",
		Long: "Lists the keys of `hopmesh train start --set KEY=VALUE`, with their values and defaults: all of them, or\n" +
			"those of a model or a strategy. --sweep KEY=V,V accepts them too, except those of strategies and links, losses,\n" +
			"the metric, weights of classes and learnt rows.",
		Example: "  hopmesh train options\n  hopmesh train options sage\n  hopmesh train options leap",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usage.OneArg("STRATEGY or MODEL")(cmd, args)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return optionTopics(strategies), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list := all()
			if len(args) == 1 {
				var known bool
				if list, known = optionsOf(list, args[0], strategies); args[0] == "auto" {
					return usage.Errorf(cmd, "auto has no settings of its own: it takes those of the strategies that it may choose, leap, centric, p3 and single")
				}
				if !known {
					return usage.Errorf(cmd, "there is no model or strategy %q%s", args[0], usage.DidYouMean(args[0], optionTopics(strategies)))
				}
			}
			if asJSON {
				return output.JSON(cmd.OutOrStdout(), list)
			}
			return printOptions(cmd.OutOrStdout(), list)
		},
	}
	daemon.JSONFlag(cmd, &asJSON)
	return cmd
}

func optionTopics(strategies []string) []string {
	var topics []string
	for _, t := range append(api.Models(), strategies...) {
		if t != "auto" {
			topics = append(topics, t)
		}
	}
	return topics
}

// optionsOf returns the settings of a model or strategy: its own, and those of all models or of
// all distributed strategies.
func optionsOf(list []Option, topic string, strategies []string) (of []Option, known bool) {
	of = []Option{}
	model := slices.Contains(api.Models(), topic)
	sharing := !model && topic != "single"
	for _, o := range list {
		group, _, _ := strings.Cut(o.Key, ".")
		if group == topic || slices.Contains(strings.Split(o.Applies, ", "), topic) || model && (group == "model" || group == "train") || sharing && o.Applies == "strategies" {
			of = append(of, o)
		}
	}
	return of, slices.Contains(optionTopics(strategies), topic)
}

func printOptions(w io.Writer, list []Option) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "There are no settings.")
		return err
	}
	rows := [][]string{{"KEY", "VALUES", "DEFAULT", "DESCRIPTION"}}
	for _, o := range list {
		rows = append(rows, []string{o.Key, o.Values, o.Default, o.Help})
	}
	return output.Table(w, rows...)
}
