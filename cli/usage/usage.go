// Package usage holds what commands need to read their arguments: checks of arguments
// and flags, completion, and errors that say how a command is used.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ErrPrinted fails a command that has already printed what is wrong.
var ErrPrinted = errors.New("the output says what is wrong")

// wrong marks an error as a mistake of the user.
type wrong struct{ error }

func (e wrong) Unwrap() error { return e.error }

// Errorf returns an error for wrong usage of a command, which names its help.
func Errorf(cmd *cobra.Command, format string, args ...any) error {
	return Wrap(fmt.Errorf("%s; see `%s --help`", fmt.Sprintf(format, args...), cmd.CommandPath()))
}

// Wrap marks an error as wrong usage.
func Wrap(err error) error { return wrong{err} }

// Is reports whether an error is wrong usage, which ends the program with exit code 2.
func Is(err error) bool {
	_, is := errors.AsType[wrong](err)
	return is
}

// NoSuchCommand is the Args of commands that only have subcommands.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Errorf(cmd, "there is no command `%s %s`%s", cmd.CommandPath(), args[0], DidYouMean(args[0], Verbs(cmd)))
}

// FlagError turns an error of pflag into a sentence.
func FlagError(cmd *cobra.Command, err error) error {
	// The flags of a mistyped command are unknown, too. Report the command.
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return NoSuchCommand(cmd, cmd.Flags().Args())
	}
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			return Errorf(cmd, "`%s` has no flag -%s", cmd.CommandPath(), name)
		}
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		return Errorf(cmd, "`%s` has no flag --%s%s", cmd.CommandPath(), name, DidYouMean("--"+name, flags))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return Errorf(cmd, "--%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		var should string
		switch e.GetFlag().Value.Type() {
		case "duration":
			should = "is not a duration such as 90m or 24h"
		case "int":
			should = "is not a whole number"
		case "uint64":
			should = "is not a whole number from 0 up"
		case "float64":
			should = "is not a number"
		case "bool":
			should = "is neither true nor false"
		default:
			should = "can't be used: " + e.Unwrap().Error()
		}
		return Errorf(cmd, "--%s %q %s", e.GetFlag().Name, e.GetValue(), should)
	}
	return Errorf(cmd, "%v", err)
}

// NoArgs is the Args of commands without arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Errorf(cmd, "`%s` takes no arguments, so %q is one too many", cmd.CommandPath(), args[0])
	}
	return nil
}

// OneArg is the Args of commands with exactly one argument.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0, len(args) == 1 && args[0] == "":
			return Errorf(cmd, "`%s` needs %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return Errorf(cmd, "`%s` takes one %s, so %q is one too many", cmd.CommandPath(), what, args[1])
		}
		return nil
	}
}

// MaybeArg is the Args of commands with one argument at most.
func MaybeArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return OneArg(what)(cmd, args)
	}
}

// Verbs returns the names of the subcommands.
func Verbs(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// OneOf joins alternatives: "a", "a or b", "a, b or c".
func OneOf(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// DidYouMean returns " (did you mean X?)" for the most similar option, or "" if none is similar.
func DidYouMean(word string, options []string) string {
	slices.Sort(options)
	best, distance := "", 3
	for _, o := range options {
		// Every option is similar to a short word.
		if d := edits(word, o); d < distance && d < len(o)/2+1 {
			best, distance = o, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// edits returns the number of insertions, deletions and replacements between two words.
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

// Group returns a command that only has subcommands.
func Group(noun cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	noun.Args = NoSuchCommand
	noun.RunE = func(cmd *cobra.Command, _ []string) error {
		return Errorf(cmd, "`%s` needs a verb: %s", cmd.CommandPath(), OneOf(Verbs(cmd)))
	}
	noun.AddCommand(verbs...)
	return &noun
}

// CompleteFlag completes a flag with fixed values.
func CompleteFlag(cmd *cobra.Command, flag string, values []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag
	}
}
