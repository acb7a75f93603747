package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is wrong usage: exit code 2.
type usageError struct {
	message string
	command string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%s; see `%s --help`", e.message, e.command)
}

func wrongUsage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), command: cmd.CommandPath()}
}

// WrongUsage marks an error of a command that runs locally as the user's
// mistake: exit code 2.
func WrongUsage(err error) error { return &wrongArguments{err} }

type wrongArguments struct{ error }

func (e *wrongArguments) Unwrap() error { return e.error }

// noSuchCommand is the Args of commands that only have verbs.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrongUsage(cmd, "there is no command `%s %s`%s", cmd.CommandPath(), args[0], didYouMean(args[0], verbNames(cmd)))
}

// flagError turns what pflag says into a sentence.
func flagError(cmd *cobra.Command, err error) error {
	// A mistyped command makes its flags unknown: the command is what is wrong.
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return noSuchCommand(cmd, cmd.Flags().Args())
	}
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			return wrongUsage(cmd, "`%s` has no flag -%s", cmd.CommandPath(), name)
		}
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		return wrongUsage(cmd, "`%s` has no flag --%s%s", cmd.CommandPath(), name, didYouMean("--"+name, flags))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return wrongUsage(cmd, "--%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		var should string
		switch e.GetFlag().Value.Type() {
		case "duration":
			should = "is no duration such as 90m or 24h"
		case "int":
			should = "is no whole number"
		case "uint64":
			should = "is no whole number from 0 up"
		case "float64":
			should = "is no number"
		case "bool":
			should = "is neither true nor false"
		default:
			should = "can't be used: " + e.Unwrap().Error()
		}
		return wrongUsage(cmd, "--%s %q %s", e.GetFlag().Name, e.GetValue(), should)
	}
	return wrongUsage(cmd, "%v", err)
}

// noArgs is the Args of commands that take none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return wrongUsage(cmd, "`%s` takes no arguments, so %q is one too many", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArg is the Args of commands that take exactly one.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0, len(args) == 1 && args[0] == "":
			return wrongUsage(cmd, "`%s` needs %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return wrongUsage(cmd, "`%s` takes one %s, so %q is one too many", cmd.CommandPath(), what, args[1])
		}
		return nil
	}
}

func verbNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// oneOf lists alternatives: "a", "a or b", "a, b or c".
func oneOf(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// didYouMean is ", did you mean X?"-shaped text, or "" if nothing is near.
func didYouMean(word string, options []string) string {
	slices.Sort(options)
	best, distance := "", 3
	for _, o := range options {
		// Short words are near everything.
		if d := edits(word, o); d < distance && d < len(o)/2+1 {
			best, distance = o, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// edits counts the insertions, deletions and replacements between two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(above+1, row[j]+1, cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
