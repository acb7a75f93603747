package main

import (
	"encoding/json"
	"testing"
)

// What the contract names of a demo, as a program would read it.
type shownDemo struct {
	Leader    string `json:"leader"`
	NewLeader string `json:"new_leader"`
	Training  []struct {
		Strategy string   `json:"strategy"`
		Nodes    []string `json:"nodes"`
		Epochs   int      `json:"epochs"`
		Test     float64  `json:"test_acc"`
		Weights  string   `json:"weights_sha256"`
		Bytes    struct {
			Feature  uint64 `json:"feature"`
			Gradient uint64 `json:"gradient"`
		} `json:"bytes"`
	} `json:"training"`
	Survived struct {
		Nodes []string `json:"nodes"`
		Same  bool     `json:"same_weights"`
	} `json:"survived"`
}

// demonstrate runs the demo, which trains by a strategy and by centric, and checks its report: so many
// epochs, this accuracy at least, and the weights of a job that lost its leader are those of one
// that did not.
func demonstrate(t *testing.T, strategy string, epochs int, accuracy float64, args ...string) shownDemo {
	t.Helper()
	out, diag, code := hopmesh(t, append([]string{"demo", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, diag)
	}
	var r shownDemo
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Training) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Leader == "" || r.NewLeader == "" || r.Leader == r.NewLeader || !r.Survived.Same || len(r.Survived.Nodes) != 2 {
		t.Errorf("%s leads after %s; %+v", r.NewLeader, r.Leader, r.Survived)
	}
	for i, name := range []string{strategy, "centric"} {
		if by := r.Training[i]; by.Strategy != name || by.Epochs != epochs || by.Test < accuracy || len(by.Nodes) != 3 {
			t.Errorf("%+v", by)
		}
	}
	return r
}

// leapBesideCentric fails the test unless leap fetched less, and learnt the same.
func leapBesideCentric(t *testing.T, r shownDemo) {
	t.Helper()
	leap, centric := r.Training[0], r.Training[1]
	if leap.Bytes.Feature == 0 || leap.Bytes.Feature >= centric.Bytes.Feature || leap.Weights != centric.Weights || leap.Bytes.Gradient == 0 || centric.Bytes.Gradient == 0 {
		t.Errorf("leap beside centric: %+v", r.Training)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel() // it mostly waits
	leapBesideCentric(t, demonstrate(t, "leap", 80, 0.7, "--epochs", "80"))
}
