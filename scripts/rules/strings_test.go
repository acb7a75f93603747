package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// literals calls do with each string of a file, without its quotes. Imports and struct tags
// are none.
func literals(f file, do func(pos token.Pos, value string)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			ast.Inspect(n.Type, func(n ast.Node) bool { return literal(n, do) })
			return false
		}
		return literal(n, do)
	})
}

func literal(n ast.Node, do func(pos token.Pos, value string)) bool {
	if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if value, err := strconv.Unquote(l.Value); err == nil {
			do(l.Pos(), value)
		}
	}
	return true
}

// counted returns a finding for each folder with strings that break a rule.
func counted(rule string, all []file, breaks func(f file, value string) bool) []finding {
	dirs := map[string]*finding{}
	for _, f := range all {
		literals(f, func(pos token.Pos, value string) {
			if breaks(f, value) {
				if dirs[f.dir()] == nil {
					dirs[f.dir()] = &finding{rule: rule, where: f.dir()}
				}
				of := dirs[f.dir()]
				of.number++
				of.at = append(of.at, fmt.Sprintf("%s: %q", f.set.Position(pos), value))
			}
		})
	}
	var found []finding
	for _, f := range dirs {
		found = append(found, *f)
	}
	return found
}

var flagPattern = regexp.MustCompile(`(?m)(^|[\s(` + "`" + `])--[a-z]`)

// commands returns the commands of hopmesh: the first words of Use in cli.
func commands(all []file) []string {
	var names []string
	for _, f := range all {
		if f.test() || !within(f.dir(), "cli") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Use" {
				literal(pair.Value, func(_ token.Pos, value string) {
					if name, _, _ := strings.Cut(value, " "); name != "" {
						names = append(names, regexp.QuoteMeta(name))
					}
				})
			}
			return true
		})
	}
	return names
}

// commandStrings finds strings below node that name a flag or a command. Programs that make
// code have flags of their own.
func commandStrings(all []file) []finding {
	command := regexp.MustCompile(`\bhopmesh (` + strings.Join(append(commands(all), "--[a-z]+"), "|") + `)\b`)
	return counted("command", all, func(f file, value string) bool {
		first, _, _ := strings.Cut(f.dir(), "/")
		return slices.Contains([]string{"engine", "consensus", "mesh"}, first) && !f.test() && f.ast.Name.Name != "main" &&
			(flagPattern.MatchString(value) || command.MatchString(value))
	})
}

func TestFlagsAndCommandsAreFound(t *testing.T) {
	const cli = "package cli\nvar _ = cobra.Command{Use: \"resume JOB\", Short: \"version\"}"
	say := func(text string) map[string]string {
		return map[string]string{"cli/train/a.go": cli, "engine/a.go": "package a\nvar _ = " + strconv.Quote(text)}
	}
	planted(t, commandStrings, []plant{
		{say("raise --memory"), "engine 1"},
		{say("--memory is too low"), "engine 1"},
		{say("memory is too low (--memory)"), "engine 1"},
		{say("see `hopmesh resume`"), "engine 1"},
		{say("see `hopmesh --version`"), "engine 1"},
		{say("run the same version of hopmesh on all nodes, hopmesh version 2 - or a--b"), ""},
		{map[string]string{
			"mesh/a.go": "package a\nvar _ = \"give --x\"", "consensus/plan/a.go": "package a\nvar _, _ = \"give --x\", \"--y\"",
			"mesh/a_test.go": "package a\nvar _ = \"give --x\"", "node/a.go": "package a\nvar _ = \"give --x\"",
			"engine/tensor/gen/a.go": "package main\nvar _ = \"give --x\"",
		}, "consensus/plan 2, mesh 1"},
	})
}
