package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/remote"
)

// graphIn writes tables into a folder.
func graphIn(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Columns of labels that lie on two nodes are those of one table, also where the first number
// that is no class is on the other node.
func TestColumnsOfLabelsOfTwoNodes(t *testing.T) {
	s := read.NewServer(0)
	defer s.Close()
	for name, c := range map[string]struct {
		here, there string
		o           read.Options
		want        string
	}{
		"several":       {"id,a,b\n0,1,0\n1,,1\n", "id,a,b\n2,0,nan\n", read.Options{}, "multilabel[a b][1 0 255 1 0 255][]"},
		"asked":         {"id,b,x,a\n0,0,5,1\n1,1,5,\n", "id,b,y,a\n2,,5,0\n", read.Options{LabelColumns: []string{"a", "b"}}, "multilabel[a b][1 0 255 1 0 255][]"},
		"numbers there": {"id,speed\n0,1\n1,2\n", "id,speed\n2,2.5\n", read.Options{}, "regression[speed][][1 2 2.5]"},
		"numbers here":  {"id,speed\n0,1\n1,2.5\n", "id,speed\n2,\n", read.Options{}, "regression[speed][][1 2.5 NaN]"},
		"as numbers":    {"id,speed\n0,1\n1,2\n", "id,speed\n2,7\n", read.Options{Task: "regression"}, "regression[speed][][1 2 7]"},
		"one of many":   {"id,a,b\n0,x,0\n1,y,1\n", "id,a,b\n2,y,1\n", read.Options{LabelColumns: []string{"a"}}, "[x y][][]"},
		"other names":   {"id,a,b\n0,1,0\n", "id,a,c\n2,0,1\n", read.Options{}, "has other columns than labels.csv in here"},
		"missing":       {"id,a,b\n0,1,0\n", "id,a,c\n2,0,1\n", read.Options{LabelColumns: []string{"a", "b"}}, "n2: labels.csv has no column called b among id, a, c: check {dataset.label_columns}"},
		"no class":      {"id,a\n0,1\n", "id,a\n2,0.5\n", read.Options{Task: "class"}, "n2: labels.csv, line 2: the label 0.5 is not an integer"},
		"a word":        {"id,a,b\n0,1,0\n", "id,a,b\n2,0,x\n", read.Options{}, `n2: labels.csv, line 2: the label b "x" is not a number`},
	} {
		here := graphIn(t, map[string]string{"edges.csv": "0,1\n1,2\n", "labels.csv": c.here})
		there := graphIn(t, map[string]string{"edges.csv": "2,0\n", "labels.csv": c.there})
		src, err := read.OpenParts(t.Context(), []read.Part{{Label: "here", Path: here}, {Label: "n2", Node: "n2", Path: there, Ask: direct(s)}}, c.o)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		m, columns := src.Meta(), src.Targets()
		if got := fmt.Sprintf("%s%v%v%v", m.Targets, m.ClassNames, columns.YesOrNo, columns.Numbers); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A node of a version before, which knows nothing of columns, sends classes. They must not be
// taken for anything else.
func TestNodeWithoutColumnsOfLabels(t *testing.T) {
	s := read.NewServer(0)
	defer s.Close()
	there := graphIn(t, map[string]string{"edges.csv": "0,1\n1,2\n", "labels.csv": "id,label\n0,1\n1,0\n2,1\n"})
	before := remote.Ask(func(ctx context.Context, question []byte) ([]byte, error) {
		for _, field := range []string{`,"Targets":true`, `,"Fractions":true`, `,"LabelColumns":["label"]`} {
			question = bytes.ReplaceAll(question, []byte(field), nil)
		}
		answer := s.Answer(ctx, "peer", question)
		for _, field := range []string{`,"Targets":true`, `,"Labels":["label"]`} {
			answer = bytes.ReplaceAll(answer, []byte(field), nil)
		}
		return answer, nil
	})
	parts := []read.Part{{Label: "n2", Node: "n2", Path: there, Ask: before}}
	src, err := read.OpenParts(t.Context(), parts, read.Options{})
	if err != nil || fmt.Sprint(src.Labels()) != "[1 0 1]" {
		t.Fatalf("classes: %v", err)
	}
	const want = "run the same version on all nodes"
	for _, o := range []read.Options{{Task: "regression"}, {LabelColumns: []string{"label"}}} {
		if _, err := read.OpenParts(t.Context(), parts, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// What each node reads of its own parts has no label among the features.
func TestShareWithoutLabels(t *testing.T) {
	nodes := graphIn(t, map[string]string{"edges.csv": "0,1\n1,0\n", "nodes.csv": "id,a,x,b\n0,1,5,0\n1,0,6,1\n"})
	parts := []read.Part{{Label: "here", Path: nodes}, {Label: "also", Path: graphIn(t, map[string]string{"edges.csv": "0,0\n"})}}
	src, err := read.OpenParts(t.Context(), parts, read.Options{LabelColumns: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	shared, ok := read.ShareOf(src, "n1")
	if !ok {
		t.Fatal("it is not shared")
	}
	for _, p := range shared.Parts {
		if p.Node != "n1" {
			t.Errorf("%+v", p)
		}
	}
	own, err := read.OpenShare(t.Context(), shared, "n1", 0)
	if err != nil || own.Meta().Features != 1 {
		t.Errorf("%v: %+v", err, own)
	}
}
