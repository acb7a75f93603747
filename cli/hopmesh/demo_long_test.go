//go:build long

package main

import "testing"

// The demo as users run it reaches Cora's published accuracy.
func TestWholeDemo(t *testing.T) {
	leapBesideCentric(t, demonstrate(t, "leap", 200, 0.79))
}

// What is not exact, or the whole graph at once, shows the same.
func TestDemoOfOtherStrategies(t *testing.T) {
	for _, strategy := range []string{"grappa", "pipe", "graph"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel() // they mostly wait
			demonstrate(t, strategy, 60, 0.6, "--strategy", strategy, "--epochs", "60")
		})
	}
}
