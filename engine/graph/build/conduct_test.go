package build

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build/wire"
)

// A mesh is several Servers in one process.
type mesh struct {
	t       *testing.T
	dir     string
	src     graph.Source
	servers map[string]*Server
	asked   atomic.Int64
	fail    func(node string, message []byte) error // nil: never
	picks   bool                                    // shares have the features of any vertices
}

type meshNode struct {
	*mesh
	name string
}

func newMesh(t *testing.T, src graph.Source, nodes int) *mesh {
	m := &mesh{t: t, dir: t.TempDir(), src: src, servers: map[string]*Server{}}
	for i := range nodes {
		name := fmt.Sprint("n", i)
		if err := os.Mkdir(filepath.Join(m.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		m.servers[name] = NewServer(meshNode{m, name})
	}
	return m
}

func (m *mesh) ask(ctx context.Context, from, node string, message []byte) ([]byte, error) {
	m.asked.Add(1)
	if m.fail != nil {
		if err := m.fail(node, message); err != nil {
			return nil, err
		}
	}
	if len(message) > MaxMessage {
		m.t.Errorf("a message of %d bytes", len(message))
	}
	b := m.servers[node].Answer(ctx, from, message)
	if len(b) > MaxReply {
		m.t.Errorf("a reply of %d bytes", len(b))
	}
	return b, nil
}

func (n meshNode) Self() string   { return n.name }
func (n meshNode) Memory() uint64 { return 0 }
func (n meshNode) Ended(err error) {
	if err != nil {
		n.t.Error(err)
	}
}
func (n meshNode) Begin(_ context.Context, id, _ string) (Stage, error) {
	s := meshStage{filepath.Join(n.dir, n.name, id)}
	return s, os.Mkdir(s.dir+".scratch", 0o700)
}
func (n meshNode) Ask(ctx context.Context, node string, message, _ []byte) ([]byte, error) {
	return n.ask(ctx, n.name, node, message)
}
func (n meshNode) Open(_ context.Context, _ []byte, share, of int) (Share, error) {
	own := sliced{n.src, uint64(share), uint64(of)}
	if n.picks {
		return picking{own}, nil
	}
	return own, nil
}

type meshStage struct{ dir string }

func (s meshStage) Folders() (string, string) { return s.dir + ".import", s.dir + ".scratch" }
func (s meshStage) Publish() error            { return os.Rename(s.dir+".import", s.dir) }
func (s meshStage) Close() error {
	return errors.Join(os.RemoveAll(s.dir+".import"), os.RemoveAll(s.dir+".scratch"))
}

// sliced is every so many batches of a source.
type sliced struct {
	graph.Source
	share, of uint64
}

func (s sliced) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	n := uint64(0)
	return s.Source.Edges(ctx, func(b graph.EdgeBatch) error {
		if n++; n%s.of == s.share {
			return yield(b)
		}
		return nil
	})
}

func (s sliced) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	n := uint64(0)
	return s.Source.Features(ctx, func(b graph.FeatureBatch) error {
		if n++; n%s.of == s.share {
			return yield(b)
		}
		return nil
	})
}

// picking is a share that has the features of any vertices.
type picking struct{ sliced }

func (p picking) Features(context.Context, func(graph.FeatureBatch) error) error {
	return errors.New("features were to travel")
}

func (p picking) FeaturesOf(ctx context.Context, wanted func(uint32) bool, yield func(graph.FeatureBatch) error) error {
	columns := p.Meta().Features
	return p.Source.Features(ctx, func(b graph.FeatureBatch) error {
		some := graph.FeatureBatch{Vertices: []uint32{}}
		for i := range len(b.Dense) / columns {
			if v := b.Vertex(i); wanted(v) {
				some.Vertices = append(some.Vertices, v)
				some.Dense = append(some.Dense, b.Dense[i*columns:(i+1)*columns]...)
			}
		}
		return yield(some)
	})
}

// makers has all nodes make shards, in runs.
func (m *mesh) makers(shards int, spec string) Makers {
	w := Makers{ID: "0123456789abcdef", Name: func(n string) string { return n }}
	for i := range len(m.servers) {
		w.Nodes = append(w.Nodes, fmt.Sprint("n", i))
	}
	for shard := range shards {
		w.Owners = append(w.Owners, shard*len(w.Nodes)/shards)
	}
	if spec != "" {
		w.Spec = json.RawMessage(spec)
	}
	w.Ask = func(ctx context.Context, node string, message, _ []byte) ([]byte, error) {
		return m.ask(ctx, "n0", node, message)
	}
	return w
}

// left lists all files of all nodes.
func (m *mesh) left() (list []string) {
	for name := range m.servers {
		entries, _ := os.ReadDir(filepath.Join(m.dir, name))
		for _, e := range entries {
			list = append(list, name+"/"+e.Name())
		}
	}
	return list
}

// The shards are the same whichever nodes make them.
func TestManyNodesMakeTheSameShards(t *testing.T) {
	shapes := map[string]shape{
		"plain":    {vertices: 3000, edges: 20000, features: 7, density: 1, classes: 3, splits: 2},
		"weighted": {vertices: 500, edges: 6000, weighted: true, features: 3, density: 1, missing: true, numbers: true},
		"names":    {vertices: 2000, edges: 9000, features: 3, density: 1, listed: true, classes: 4, names: true, splits: 1},
		"hub":      {vertices: 900, edges: 12000, hub: true},
		"labels":   {vertices: 400, edges: 2000, features: 3, density: 1, classes: 3, splits: 1, targets: graph.YesOrNo},
		"values":   {vertices: 400, edges: 2000, features: 3, density: 1, classes: 3, splits: 1, targets: graph.Numbers},
	}
	for name, s := range shapes {
		for _, partitioner := range []string{stream, multilevel, random} {
			for _, undirected := range []bool{false, true} {
				src := s.source(5)
				o := Options{Dir: filepath.Join(t.TempDir(), "one"), Shards: 6, Partitioner: partitioner, Undirected: undirected, Seed: 3, DType: graph.BF16}
				want, err := Run(t.Context(), src, o)
				if err != nil {
					t.Fatal(err)
				}
				for nodes := 1; nodes <= 3; nodes++ {
					for _, spec := range []string{"", "{}", "{picks}"} {
						m := newMesh(t, src, nodes)
						m.picks = spec == "{picks}"
						w := m.makers(6, strings.Replace(spec, "picks", "", 1))
						got, err := Conduct(t.Context(), src, o, w)
						if err == nil {
							err = w.Publish(t.Context())
						}
						w.Drop(t.Context())
						label := fmt.Sprintf("%s, %s, undirected %t, %d nodes, spec %q", name, partitioner, undirected, nodes, spec)
						if err != nil {
							t.Errorf("%s: %v", label, err)
							continue
						}
						if digests(got) != digests(want) {
							t.Errorf("%s: other shards", label)
						}
						got.WallSeconds, got.CutSeconds, want.WallSeconds, want.CutSeconds = 0, 0, 0, 0
						if fmt.Sprint(*got) != fmt.Sprint(*want) {
							t.Errorf("%s: manifest\n%v, want\n%v", label, *got, *want)
						}
						for shard, owner := range w.Owners {
							path := filepath.Join(m.dir, w.Nodes[owner], w.ID, graph.ShardFile(shard))
							b, err := os.ReadFile(path)
							if digest := fmt.Sprintf("%x", sha256.Sum256(b)); err != nil || digest != want.Shards[shard].SHA256 {
								t.Errorf("%s: shard %d has another digest, or none: %v", label, shard, err)
							}
						}
						if left := m.left(); len(left) != nodes {
							t.Errorf("%s: left %v", label, left)
						}
					}
				}
			}
		}
	}
}

// Whatever fails, at any message, nothing is left on any node.
func TestAnyMessageMayFail(t *testing.T) {
	s := shape{vertices: 900, edges: 5000, features: 3, density: 1, classes: 3, splits: 1}
	src := s.source(1)
	o := Options{Dir: filepath.Join(t.TempDir(), "one"), Shards: 4, Partitioner: stream}
	for _, spec := range []string{"", "{}"} {
		fails := true
		for at := int64(1); fails; at += 1 + at/8 {
			m := newMesh(t, src, 3)
			w := m.makers(4, spec)
			fails = false
			m.fail = func(node string, message []byte) error {
				if m.asked.Load() == at && message[0] != sayClose {
					fails = true
					return errors.New("the plug was pulled")
				}
				return nil
			}
			_, err := Conduct(t.Context(), src, o, w)
			if err == nil {
				err = w.Publish(t.Context())
			}
			w.Drop(t.Context())
			if failed := err != nil; failed != fails || failed && !strings.Contains(err.Error(), "plug was pulled") {
				t.Fatalf("message %d: %v", at, err)
			}
			if left := m.left(); fails && len(left) > 0 && err != nil && !strings.Contains(fmt.Sprint(left), w.ID) {
				t.Errorf("message %d: left %v", at, left)
			}
			for _, l := range m.left() {
				if strings.Contains(l, ".") {
					t.Errorf("message %d: left %s", at, l)
				}
			}
		}
	}
}

// FuzzMessages gives a maker what no node sends. In the input, messages follow one another,
// each with its length before it.
func FuzzMessages(f *testing.F) {
	s := shape{vertices: 40, edges: 100, features: 3, density: 1, classes: 3, splits: 1}
	src := s.source(1)
	record := func(say byte, body ...byte) []byte { return append([]byte{say, byte(len(body))}, body...) }
	eight := func(list ...uint64) (b []byte) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	f.Add(slices.Concat(record(sayHalves, all64(5<<32|7<<1|1)...), record(sayDo, doSort), record(sayPoll), record(sayRead, eight(0, 8)...)))
	f.Add(slices.Concat(record(sayParts, make([]byte, 80)...), record(sayNumber), record(sayEdges, new(wire.Packer).Append(nil, []uint64{5<<32 | 7})...), record(sayDo, doMake), record(sayPoll)))
	f.Add(slices.Concat(record(sayColumn, append(eight(0), 1, 2, 3)...), record(sayRows, append(eight(1), make([]byte, 16)...)...), record(sayPublish)))
	f.Add(slices.Concat(record(sayParts, make([]byte, 80)...), record(sayNumber), record(sayDo, doMake), record(sayPoll),
		record(sayRows, append(eight(1), make([]byte, 16)...)...), record(sayDo, doDrawRows), record(sayPoll), record(sayDo, doFinish), record(sayPoll), record(sayPublish)))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, in []byte) {
		m := &mesh{t: t, dir: dir, src: src, servers: map[string]*Server{}}
		_ = os.Mkdir(filepath.Join(dir, "n0"), 0o700)
		m.servers["n0"] = NewServer(meshNode{m, "n0"})
		defer m.servers["n0"].Close()
		w := m.makers(1, "{}")
		c := &conductor{Makers: w, b: newBuilder(src, Options{Shards: 1}, &plan{shards: 1})}
		j := job{Meta: src.Meta(), Shards: 1, DType: graph.F32, Labels: true, Splits: 1, Shift: 3, Nodes: w.Nodes, Owners: w.Owners, Spec: w.Spec, Output: 1 << 20}
		body, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.deliver(t.Context(), 0, append(c.message(sayOpen), body...)); err != nil {
			t.Fatal(err)
		}
		for len(in) >= 2 {
			n := min(int(in[1]), len(in)-2)
			m.servers["n0"].Answer(t.Context(), "n0", append(c.message(in[0]), in[2:2+n]...))
			in = in[2+n:]
		}
		w.Drop(t.Context())
		_ = os.RemoveAll(filepath.Join(dir, "n0", w.ID))
	})
}

// FuzzOpen gives a maker jobs that nobody asks for.
func FuzzOpen(f *testing.F) {
	src := shape{vertices: 40, edges: 100}.source(1)
	f.Add([]byte(`{"Meta":{"Vertices":40,"Edges":100},"Shards":1,"DType":"f32","Shift":3,"Nodes":["n0"],"Owners":[0]}`))
	f.Add([]byte(`{"Meta":{"Vertices":1,"Edges":0,"Features":9},"Shards":2,"DType":"bf16","Random":true,"Nodes":["n0","n1"],"Self":1,"Owners":[0,1]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, in []byte) {
		m := &mesh{t: t, dir: dir, src: src, servers: map[string]*Server{}}
		_ = os.Mkdir(filepath.Join(dir, "n0"), 0o700)
		m.servers["n0"] = NewServer(meshNode{m, "n0"})
		head, err := wire.Head(sayOpen, "0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		m.servers["n0"].Answer(t.Context(), "n0", append(head, in...))
		m.servers["n0"].Close()
		if left := m.left(); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}
