package golden

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	every  = flag.Bool("all", false, "train all models, and not only the four best known")
	update = flag.Bool("update", false, "train all models and write the table anew")
)

const header = `# The weights after each epoch: the first 16 digits of their SHA-256, of the models of a
# sweep one after the other. The last column is a hash of all losses and scores. They are
# the same on 1, 2 and 5 nodes, by kernels for AVX2 and for AVX-512.
# Written by: go test ./engine/golden -update
`

// An outcome is what a run has come to.
type outcome struct {
	weights []string // hashes after each epoch
	scores  string   // hash of losses and scores
}

// refused is the outcome of models that a strategy does not train.
const refused = "refused"

func (o outcome) String() string { return strings.Join(o.weights, " ") + "  scores " + o.scores }

func short(hash string) string { return hash[:16] }

// A table holds outcomes by "variant model".
type table map[string]string

func tablePath() string { return filepath.Join("testdata", "hashes.txt") }

func readTable(t *testing.T) table {
	t.Helper()
	text, err := os.ReadFile(tablePath())
	if err != nil {
		t.Fatal(err)
	}
	all := table{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) == 0 {
			continue
		}
		if len(fields) < 3 {
			t.Fatalf("%s has the line %q", tablePath(), line)
		}
		what := fields[2]
		if what != refused {
			what = strings.Join(fields[2:len(fields)-2], " ") + "  " + strings.Join(fields[len(fields)-2:], " ")
		}
		all[fields[0]+" "+fields[1]] = what
	}
	return all
}

func (all table) write() error {
	var text strings.Builder
	text.WriteString(header)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		variant, model, _ := strings.Cut(key, " ")
		fmt.Fprintf(&text, "%-21s %-9s %s\n", variant, model, all[key])
	}
	return os.WriteFile(tablePath(), []byte(text.String()), 0o644)
}

// trained reports whether this run of the test trains a model.
func (m model) trained() bool { return m.usual || *every || *update }

// Weights after each epoch, losses and scores are those of the table, on any number of
// nodes. On processors with other kernels all numbers of nodes must agree.
func TestWeightsAreThoseOfTheTable(t *testing.T) {
	if *update && !recorded() {
		t.Fatal("the table is recorded with kernels for AVX2 or AVX-512, which this process does not use")
	}
	all := graphs(t)
	got, guard := table{}, sync.Mutex{}
	t.Run("train", func(t *testing.T) {
		for _, v := range variants {
			for _, m := range v.trains() {
				if !m.trained() {
					continue
				}
				shards := all[v.task]
				if v.typed {
					shards = all["typed"]
				}
				if v.along {
					shards = all["along"]
				}
				if v.bare && !v.typed {
					shards = all["bare"]
				}
				if v.triples {
					shards = all["triples"]
				}
				t.Run(v.name+"/"+m.name, func(t *testing.T) {
					t.Parallel()
					what := refused
					if ok, err := accepts(v, m, shards); err != nil {
						t.Fatal(err)
					} else if ok {
						nodes := []int{1, 2, 5}
						if v.strategy == "single" {
							nodes = nodes[:1]
						}
						what = ""
						for _, n := range nodes {
							all, err := run(t.Context(), v, m, shards, n)
							if err != nil {
								t.Fatalf("on %d nodes: %v", n, err)
							}
							for node, o := range all {
								if what == "" {
									what = o.String()
								}
								if o.String() != what {
									t.Errorf("node %d of %d:\n%s\nand one node:\n%s", node, n, o, what)
								}
							}
						}
					}
					guard.Lock()
					defer guard.Unlock()
					got[v.name+" "+m.name] = what
				})
			}
		}
	})
	checkExact(t, got)
	if !recorded() || t.Failed() {
		return
	}
	want := readTable(t)
	if *update {
		maps.DeleteFunc(want, func(key, _ string) bool { return !known(key) })
		maps.Copy(want, got) // the rest stays where -run has left some out
		if err := want.write(); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if got[key] != want[key] {
			t.Errorf("%s:\n%s\nand in the table:\n%s", key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !known(key) {
			t.Errorf("%s has %s, which is no case", tablePath(), key)
		}
	}
}

// known reports whether a line of the table is of a case that can be trained.
func known(key string) bool {
	for _, v := range variants {
		for _, m := range v.trains() {
			if key == v.name+" "+m.name {
				return true
			}
		}
	}
	return false
}

// checkExact fails unless exact variants have learnt the same as the first of them.
func checkExact(t *testing.T, got table) {
	t.Helper()
	type batches struct {
		full, typed, along, bare, triples bool
		task                              string
	}
	first := map[batches]string{}
	for _, v := range variants {
		if !v.exact {
			continue
		}
		of := batches{v.full, v.typed, v.along, v.bare, v.triples, v.task}
		if first[of] == "" {
			first[of] = v.name
		}
		for _, m := range v.trains() {
			what, ran := got[v.name+" "+m.name]
			want, also := got[first[of]+" "+m.name] // -run may have left either out
			if ran && also && what != want {
				t.Errorf("%s and %s learn different weights of a %s:\n%s\nand\n%s", v.name, first[of], m.name, what, want)
			}
		}
	}
}
