package api_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

// Damage stands among the problems of a status, and comes back from there.
func TestDamageIsAProblem(t *testing.T) {
	s := api.Status{
		Node: "a", Ready: true, Problems: []string{"not answering: c"},
		Damage: []api.Damage{{Kind: "log", Node: "b", What: "entry 7 is damaged: the node rejoins"}},
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `"problems":["not answering: c",{"kind":"log","node":"b","what":"entry 7 is damaged: the node rejoins","repaired":false}]`
	if !strings.Contains(string(b), want) || strings.Count(string(b), "problems") != 1 {
		t.Errorf("%s, not %s", b, want)
	}
	var back api.Status
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("%+v, %v", back, err)
	}
	if got := s.Sentences(); len(got) != 2 || got[1] != "log of node b: entry 7 is damaged: the node rejoins" {
		t.Errorf("%q", got)
	}
	if b, err = json.Marshal(api.Status{}); err != nil || !strings.Contains(string(b), `"problems":[]`) {
		t.Errorf("%s, %v", b, err)
	}
	if err := json.Unmarshal([]byte(`{"problems":[7]}`), &back); err == nil {
		t.Error("a number is no problem")
	}
}
