// Package wording turns the keys in texts of the engine, the consensus and the mesh into the
// flags and commands that users type. Those packages know settings and causes, but no command
// line: they write "{lr} must be above 0", and users read "--lr must be above 0".
//
// Texts are worded where they leave node: errors and settings in package node, which serves
// the API and ends the agent, and records of the log by Handler. The sentences about a job
// are worded by node/jobs, before the plan keeps them: its limit on their length is for what
// users read, and every node shows and logs them as they are. Only sentences that the plan
// writes itself are worded when they are shown, by node/jobs/control.
package wording

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategies"
)

// flags are the keys of a training's settings that have a flag of the same name. All others
// are settings of --set.
var flags = []string{
	"batch", "deterministic", "dropout", "edge-split", "epochs", "eval-every", "fanout", "heads", "hidden", "layers", "lr", "model", "norm",
	"normalize-features", "optimizer", "patience", "split", "strategy", "sweep", "task", "weight-decay",
}

// others are the flags of other commands than train start, by key. A flag of the agent can
// only be changed by who starts it, so that some are worded with their command.
var others = map[string]string{
	"agent.bootstrap":         "--bootstrap",
	"agent.data-dir":          "--data-dir",
	"agent.device":            "--device",
	"agent.join":              "--join",
	"agent.memory":            "`hopmesh agent --memory`",
	"agent.name":              "--name",
	"dataset.edge_features":   "--edge-features",
	"dataset.label_columns":   "--label-columns",
	"dataset.memory":          "--memory",
	"dataset.partitioner":     "--partitioner",
	"dataset.relation_column": "--relation-column",
	"dataset.shards":          "--shards",
	"dataset.task":            "--task",
	"dataset.type_column":     "--type-column",
	"dataset.undirected":      "--undirected",
}

// commands are the keys of commands.
var commands = map[string]string{
	"api.token.create": "api token create",
	"api.token.revoke": "api token revoke",
	"dataset.remove":   "dataset remove",
	"dataset.show":     "dataset show",
	"doctor":           "doctor",
	"force-leave":      "force-leave",
	"members":          "members",
	"token.create":     "token create",
	"token.revoke":     "token revoke",
	"train.options":    "train options",
	"train.remove":     "train remove",
	"train.resume":     "train resume",
	"train.stop":       "train stop",
}

// keyPattern matches a key, which may have a value or arguments: {lr}, {pipe.ways=2},
// {train.resume 4711}.
var keyPattern = regexp.MustCompile(`\{([a-z0-9][a-z0-9_.-]*)([ =][^{}]*)?\}`)

// Text returns a text with its keys as users write them. It replaces only keys that it knows
// and only where they stand as words of their own, so that most of what users gave stays as it
// is: a path with braces, or a quoted name. A text that was worded before does not change.
func Text(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	done := 0
	for _, at := range keyPattern.FindAllStringSubmatchIndex(text, -1) {
		key, rest := text[at[2]:at[3]], ""
		if at[4] >= 0 {
			rest = text[at[4]:at[5]]
		}
		if words := named(key, rest); words != "" && apart(text[:at[0]], text[at[1]:]) {
			b.WriteString(text[done:at[0]])
			b.WriteString(words)
			done = at[1]
		}
	}
	return b.String() + text[done:]
}

// named returns a key as users write it, or "" if there is no such key.
func named(key, rest string) string {
	if command, is := commands[key]; is {
		return "`hopmesh " + command + rest + "`"
	}
	if flag, is := others[key]; is {
		return flag + rest
	}
	if slices.Contains(flags, key) {
		return "--" + key + rest
	}
	if slices.ContainsFunc(strategies.Settings(), func(o nn.Option) bool { return o.Key == key }) {
		return "--set " + key + rest
	}
	return ""
}

// apart reports whether what stands between these parts of a text is a word of its own.
func apart(before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	if before != "" && !strings.ContainsRune(" (\n", last) {
		return false
	}
	after = strings.TrimLeft(after, ".,:;)")
	return after == "" || strings.IndexByte(" \n=", after[0]) >= 0
}

// Error returns an error with the text of err worded, which wraps err.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if words := Text(text); words != text {
		return &worded{words, err}
	}
	return err
}

// worded is an error whose keys are worded.
type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }
func (w *worded) Unwrap() error { return w.err }

// Options returns settings whose descriptions are worded.
func Options(list []nn.Option) []nn.Option {
	list = slices.Clone(list)
	for i := range list {
		o := &list[i]
		o.Applies, o.Default, o.Help = Text(o.Applies), Text(o.Default), Text(o.Help)
	}
	return list
}
