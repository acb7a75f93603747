package rules

import (
	"slices"
	"strings"
	"testing"
)

// strategies are the names of strategies that are no ordinary words. Mind single, graph,
// local and pipe by eye.
var strategies = []string{"leap", "centric", "p3", "grappa"}

// mayName reports whether a file of a folder may name a strategy: its own package, the one
// list, what shows or measures strategies, and tests.
func mayName(strategy string, f file) bool {
	dir := f.dir()
	return f.test() || inTests(dir) ||
		within(dir, "engine/strategy/"+strategy) || within(dir, "engine/strategies") ||
		within(dir, "node/demo") || within(dir, "node/bench") || within(dir, "scripts")
}

// inTests reports whether a folder is that of a package for tests, or lies in one.
func inTests(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool { return strings.HasSuffix(name, "test") })
}

func strategyNames(all []file) []finding {
	return counted("strategy", all, func(f file, value string) bool {
		return slices.Contains(strategies, value) && !mayName(value, f)
	})
}

// strategyImports finds the strategies that engine/train imports. The
// parser of settings in engine/strategy is no strategy.
func strategyImports(all []file) []finding {
	importers := map[string][]string{}
	for _, f := range all {
		if f.dir() != "engine/train" || f.test() {
			continue
		}
		for _, i := range f.ast.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if strategy, ok := strings.CutPrefix(imported, full("engine/strategy")+"/"); ok {
				importers[strategy] = append(importers[strategy], f.path)
			}
		}
	}
	var found []finding
	for strategy, in := range importers {
		found = append(found, finding{"import", "engine/train imports engine/strategy/" + strategy, len(in), in})
	}
	return found
}

func TestStrategiesInTheWrongPlaceAreFound(t *testing.T) {
	const names = "package a\nvar _ = []string{\"leap\", `p3`, \"leap.mode\", \"single\", \"pipe\"}\ntype t struct { f int `leap` }"
	planted(t, strategyNames, []plant{
		{map[string]string{"engine/train/a.go": names}, "engine/train 2"},
		{map[string]string{"engine/strategy/p3/a.go": names, "engine/strategy/auto/a.go": names}, "engine/strategy/auto 2, engine/strategy/p3 1"},
		{map[string]string{"engine/strategy/settings.go": names, "engine/strategy/other.go": names}, "engine/strategy 4"},
		{map[string]string{
			"engine/strategies/a.go": names, "node/demo/a.go": names, "node/bench/strategies/a.go": names,
			"scripts/runs/a.go": names, "node/a_test.go": names, "node/nodetest/school/a.go": names,
		}, ""},
	})
	src := "package train\nimport (\n\"" + full("engine/strategy") + "\"\np \"" + full("engine/strategy/p3") + "\"\n)"
	planted(t, strategyImports, []plant{
		{map[string]string{"engine/train/a.go": src, "engine/train/b.go": src, "engine/train/a_test.go": src, "engine/strategies/a.go": src}, "engine/train imports engine/strategy/p3 2"},
	})
}
