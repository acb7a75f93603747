package damage

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

func names(id string) string { return strings.TrimPrefix(id, "id-") }

// A board shows this node's damage and that of others, each once, until it is repaired or the
// other node is silent.
func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(slog.New(slog.DiscardHandler))
		b.Found(Log, "log", "entry 7 is damaged")
		b.Found(Log, "log", "entry 7 is damaged")
		b.Found(Shard, "d/3", "shard 3 of d is damaged")
		b.hear("id-b", []Entry{{Kind: Checkpoint, What: "job j1's is damaged"}})
		want := []api.Damage{
			{Kind: "log", Node: "a", What: "entry 7 is damaged"}, {Kind: "shard", Node: "a", What: "shard 3 of d is damaged"},
			{Kind: "checkpoint", Node: "b", What: "job j1's is damaged"},
		}
		if got := b.All("a", names); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v", got)
		}
		b.Repaired(Log, "log", "the node rejoined")
		b.Clear(Shard, "d/3")
		time.Sleep(heardLasts + time.Second)
		if got := b.All("a", names); len(got) != 1 || !got[0].Repaired {
			t.Errorf("%+v", got)
		}
		time.Sleep(repairedLasts)
		if got := b.All("a", names); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		for i := range 3 * maxOwn {
			b.Found(Shard, fmt.Sprint(i), strings.Repeat("x", 2*maxText))
		}
		if got := b.Own(); len(got) != maxOwn || len(got[0].What) != maxText {
			t.Errorf("%d entries", len(got))
		}
	})
}

// On a full board, what was repaired makes room for what was not, and never the other way round.
func TestRepairedMakesRoom(t *testing.T) {
	b := New(slog.New(slog.DiscardHandler))
	for i := range maxOwn {
		b.Found(Shard, fmt.Sprint(i), "it is damaged")
	}
	b.Repaired(Model, "j1", "there is another")
	if own := b.Own(); len(own) != maxOwn || own[0].Key != "0" || own[maxOwn-1].Kind != Shard {
		t.Errorf("%+v", own)
	}
	b.Repaired(Shard, "7", "it was fetched")
	b.Found(Model, "j2", "it is damaged")
	own := b.Own()
	for _, e := range own {
		if e.Repaired {
			t.Errorf("%+v", e)
		}
	}
	if len(own) != maxOwn || own[0].Key != "0" || own[maxOwn-1].Key != "j2" {
		t.Errorf("%+v", own)
	}
}

// What another node tells is bounded, and nothing in it moves a terminal's cursor.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`[{"kind":"log","key":"k","what":"entry 7"}]`))
	f.Add([]byte(`[{"kind":"\u001b[2J","what":"\u202e\ud800"}]`))
	f.Add([]byte(`[` + strings.Repeat(`{},`, 100) + `{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decode(b)
		if err != nil {
			return
		}
		if len(list) > maxOwn {
			t.Fatalf("%d entries", len(list))
		}
		for _, e := range list {
			for _, s := range []string{string(e.Kind), e.Key, e.What} {
				if len(s) > maxText || strings.ContainsAny(s, "\x1b\n\x00") {
					t.Fatalf("%q", s)
				}
			}
		}
		if _, err := json.Marshal(list); err != nil {
			t.Fatal(err)
		}
	})
}
