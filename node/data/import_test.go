package data

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/node/api"
)

// A planned is a plan that does not change.
type planned struct {
	Plan
	state *plan.State
}

func (p planned) State() *plan.State { return p.state }

// What a member of a version before does not know is refused before anything is read or reserved.
func TestImportsThatNotAllKnowAreRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"typed/nodes/paper.csv": "no table of nodes", "typed/edges/paper-cites-paper.csv": "", // it would be refused if it were read
		"triples/train.txt": "no triple", "triples/test.txt": "",
		"numbers/edges.csv": "src,dst\n0,1\n", "numbers/nodes.csv": "id,label\n0,1.5\n1,2.5\n",
		"categories/edges.csv": "src,dst,relation\n0,1,cites\n0,1,\n",
		"described/edges.csv":  "src,dst,length\n0,1,2\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for source, knows := range map[string]plan.Kind{"typed": plan.KindTypes, "triples": plan.KindTriples, "categories": plan.KindTypes, "numbers": plan.KindScheduleJob, "described": plan.KindEdges} {
		state := &plan.State{Members: map[string]plan.Member{
			"a": {ID: "a", Name: "alpha", Knows: plan.Newest}, "b": {ID: "b", Name: "beta", Version: "v9", Knows: knows - 1},
		}}
		// It has no keeper and no leader, whom an import that is not refused would ask.
		d := &Datasets{importer: &importer{plan: planned{state: state}}}
		r := api.ImportRequest{Name: "g", Source: filepath.Join(dir, source)}
		if source == "described" {
			r.EdgeFeatures = []string{"length"}
		}
		_, err := d.Import(t.Context(), r, func(api.DatasetEvent) {})
		if refusal, is := errors.AsType[*api.Error](err); !is || refusal.Status != http.StatusConflict || !strings.Contains(err.Error(), "dataset g can't be made here: node beta (hopmesh v9): a node of the mesh runs a version of hopmesh that does not know how: upgrade it first") {
			t.Errorf("%s: %v", source, err)
		}
	}
}
