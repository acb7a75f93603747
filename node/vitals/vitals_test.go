package vitals

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// fake is a mesh of this node and others, which answer with what is given.
type fake struct {
	members []mesh.Member
	traffic []mesh.Traffic
	answers map[string]string // by node; without one it answers nothing
	handler mesh.CallHandler
}

func (f *fake) ID() string                          { return "self" }
func (f *fake) Members() []mesh.Member              { return f.members }
func (f *fake) Traffic() []mesh.Traffic             { return f.traffic }
func (f *fake) Handle(_ string, h mesh.CallHandler) { f.handler = h }
func (f *fake) Call(ctx context.Context, peer, _ string, _ []byte) ([]byte, error) {
	if a, ok := f.answers[peer]; ok {
		return []byte(a), nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{traffic: []mesh.Traffic{
			{Peer: "b", Connection: 1, Sent: 5000, Received: 100, RTT: 3 * time.Millisecond},
			{Peer: "a", Connection: 2, Sent: 7, RTT: 8 * time.Millisecond},
			{Peer: "b", Connection: 3, Sent: 10, RTT: 2 * time.Millisecond},
		}}
		v := New(f, 100)
		say := func() (r report) {
			t.Helper()
			b, err := f.handler(t.Context(), "b", nil)
			if err != nil {
				t.Fatal(err)
			}
			if r, err = decode(b); err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := say()
		if r.Memory == 0 || r.Bound != 100 || len(r.Links) != 2 || r.Links[1] != (link{Peer: "b", RTT: 2 * time.Millisecond}) {
			t.Fatalf("at first it says %+v", r)
		}
		// One connection has ended, one is new.
		f.traffic = []mesh.Traffic{{Peer: "b", Connection: 1, Sent: 9000, Received: 100}, {Peer: "b", Connection: 4, Sent: 1000, Received: 30}}
		<-time.After(span / 2)
		if r = say(); len(r.Links) != 2 {
			t.Fatalf("it counts over half of the span: %+v", r)
		}
		<-time.After(2*span - span/2)
		want := link{Peer: "b", Sent: 2500, Received: 15}
		if r = say(); len(r.Links) != 1 || r.Links[0] != want {
			t.Fatalf("it says %+v, want %+v", r.Links, want)
		}
		if again := v.own(); again.Links[0] != want {
			t.Errorf("at the same moment it says %+v", again.Links)
		}
	})
}

func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, err := json.Marshal(report{Memory: 7, Links: []link{{Peer: "self", RTT: time.Second, Sent: 1}, {Peer: "unknown"}}})
		if err != nil {
			t.Fatal(err)
		}
		many, err := json.Marshal(report{Links: make([]link, maxLinks+1)})
		if err != nil {
			t.Fatal(err)
		}
		f := &fake{answers: map[string]string{"good": string(good), "junk": "{", "odd": `{"links":[{"sent":-1}]}`, "many": string(many), "long": `{"links":[{"peer":"` + strings.Repeat("x", longest+1) + `"}]}`, "wide": `{"links":[{"sent":` + strings.Repeat("9", 1<<16) + `}]}`, "dead": string(good)}}
		names := map[string]string{"self": "n0"}
		for _, id := range []string{"good", "junk", "odd", "many", "long", "wide", "slow"} {
			f.members = append(f.members, mesh.Member{ID: id, Status: mesh.Alive})
			names[id] = "n-" + id
		}
		f.members = append(f.members, mesh.Member{ID: "dead", Status: mesh.Failed})
		names["dead"] = "n-dead"
		begin := time.Now()
		list := New(f, 0).All(t.Context(), names)
		if took := time.Since(begin); took != patience {
			t.Errorf("it took %v", took)
		}
		if len(list) != len(names) {
			t.Fatalf("%+v", list)
		}
		by := map[string]api.NodeVitals{}
		for _, n := range list {
			by[n.Name] = n
		}
		if by["n0"].MemoryUsed == 0 || by["n0"].Error != "" {
			t.Errorf("this node: %+v", by["n0"])
		}
		if g := by["n-good"]; g.MemoryUsed != 7 || len(g.Links) != 2 || g.Links[0] != (api.Link{To: "n0", RTTSeconds: 1, SentPerSecond: 1}) || g.Links[1].To != "unknown" {
			t.Errorf("a good answer: %+v", g)
		}
		for name, says := range map[string]string{"n-junk": "can't be read", "n-odd": "negative", "n-many": "1025 links", "n-long": "an id of 201 bytes", "n-wide": "can't be read", "n-slow": context.DeadlineExceeded.Error(), "n-dead": "does not answer"} {
			if n := by[name]; !strings.Contains(n.Error, says) || len(n.Error) > longest+len("…") || n.MemoryUsed != 0 || len(n.Links) != 0 {
				t.Errorf("%+v", n)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"memory":1,"links":[{"peer":"a","rtt":1,"sent":2,"received":3}]}`))
	f.Add([]byte(`{"links":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(again); err != nil {
			t.Fatalf("%+v is refused once it is written: %v", r, err)
		}
	})
}
