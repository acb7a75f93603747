package planetoid

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestPlanetoid(t *testing.T) {
	for _, path := range []string{"python2", "text", "python3", "python2/ind.python2.graph", "python2/ind.python2"} {
		t.Run(path, func(t *testing.T) {
			h := readtest.MustHold(t, Open, filepath.Join("../testdata/planetoid", path), source.Options{})
			if want := (graph.Meta{Format: "planetoid", Vertices: 10, Edges: 12, Features: 4, Sparse: true, NonZeros: 10, Classes: 3}); !reflect.DeepEqual(h.Meta, want) {
				t.Errorf("it is %+v", h.Meta)
			}
			edges := [][2]uint32{{0, 1}, {0, 2}, {0, 7}, {1, 0}, {2, 0}, {2, 8}, {3, 4}, {4, 3}, {6, 9}, {7, 0}, {8, 2}, {9, 6}}
			if !slices.Equal(h.Edges, edges) {
				t.Errorf("edges %v", h.Edges)
			}
			if want := []int32{0, 1, 2, 0, 1, -1, 1, -1, 2, 0}; !slices.Equal(h.Labels, want) {
				t.Errorf("labels %v", h.Labels)
			}
			if want := []graph.Mark{1, 1, 2, 2, 2, 2, 3, 0, 3, 3}; len(h.Splits) != 1 || !slices.Equal(h.Splits[0], want) {
				t.Errorf("splits %v", h.Splits)
			}
			for v, want := range [][]readtest.Cell{{{0, 1}}, {{1, 1}}, {{2, 1}}, {{3, 1}}, {{0, 1}, {1, 1}}, {}, {{1, 2}}, nil, {{0, 0.5}, {3, 0.25}}, {{3, 4}}} {
				if !slices.Equal(h.Features[uint32(v)], want) {
					t.Errorf("vertex %d has %v", v, h.Features[uint32(v)])
				}
			}
			notes := strings.Join(h.Notes, "\n")
			if len(h.Notes) != 2 || !strings.Contains(notes, ".test.index leaves out ids (1 of them), which were") || !strings.Contains(notes, ".graph: edges of a vertex with itself (1 of them) were") {
				t.Errorf("notes %q", h.Notes)
			}
		})
	}
}

// tiny copies the fixture, so that a test can change it.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../testdata/planetoid/python2")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPlanetoidRefusals(t *testing.T) {
	write := func(ending, content string) func(dir string) error {
		return func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ind.python2"+ending), []byte(content), 0o600)
		}
	}
	swap := func(ending, by string) func(dir string) error {
		return func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "ind.python2"+by))
			if err != nil {
				return err
			}
			return write(ending, string(b))(dir)
		}
	}
	const array = "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n(I%d\nI%d\ntcnumpy\ndtype\n(S'%s'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\nS'%s'\ntb."
	for name, c := range map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"a function":           {write(".graph", "cos\nsystem\n(S'true'\ntR."), "ind.python2.graph: it names \"os.system\", which Python would execute, and only arrays, sparse matrices and dicts are read: get the file from where it was published"},
		"a module's like":      {write(".allx", "cnumpy.core.multiarray\n_reconstruct_\n."), "ind.python2.allx: it names \"numpy.core.multiarray._reconstruct_\", which"},
		"a hidden function":    {write(".graph", "\x80\x04\x8c\x05posix\x8c\x06system\x93."), "it names \"posix.system\", which Python would execute"},
		"an extension":         {write(".graph", "\x80\x02\x82\x01."), "it uses the pickle operation 0x82, which plain arrays and dicts do not need"},
		"a later protocol":     {write(".graph", "\x80\x09."), "it is a pickle of protocol 9, and those up to 5 are known"},
		"no pickle":            {write(".tx", "hello"), "ind.python2.tx: it is damaged or not a pickle of Python: copy the file again"},
		"half a pickle":        {write(".tx", "\x80\x02}"), "ind.python2.tx: it ends too early: copy the file again"},
		"a claim":              {write(".tx", "\x80\x02T\xff\xff\xff\x7fabc."), "ind.python2.tx: it ends too early: copy the file again"},
		"a number":             {write(".allx", "I7\n."), "ind.python2.allx: it holds no sparse matrix of SciPy (csr_matrix): take the file from kimiyoung/planetoid"},
		"a hollow matrix":      {write(".allx", "cscipy.sparse.csr\ncsr_matrix\n)\x81}b."), "ind.python2.allx: its sparse matrix is not whole"},
		"two classes":          {write(".y", fmt.Sprintf(array, 1, 3, "u1", `\x01\x00\x01`)), "ind.python2.y: row 0 has two classes, 0 and 2, and a vertex has one: leave one of them"},
		"no one-hot":           {write(".y", fmt.Sprintf(array, 1, 3, "u1", `\x07\x00\x00`)), "ind.python2.y: row 0, column 0 is neither 0 nor 1: write labels as one-hot rows"},
		"bytes too few":        {write(".y", fmt.Sprintf(array, 2, 3, "u1", `\x01`)), "ind.python2.y: it is damaged"},
		"objects":              {write(".y", fmt.Sprintf(array, 1, 3, "O8", `\x01`)), "ind.python2.y: it holds Python objects"},
		"too many trained":     {write(".y", fmt.Sprintf(array, 7, 1, "u1", strings.Repeat(`\x01`, 7))), "ind.python2.y: it has 7 rows and ind.NAME.ally has 6: take all files from one place"},
		"another ally":         {swap(".ally", ".ty"), "ind.python2.ally: it has 3 rows and ind.NAME.allx has 6: take all files from one place"},
		"another ty":           {swap(".ty", ".y"), "ind.python2.ty: it has 2 rows and 3 columns, and 3 and 3 were expected: take all files from one place"},
		"another tx":           {swap(".tx", ".x"), "ind.python2.tx: it has 2 rows and ind.NAME.test.index has 3 lines: take all files from one place"},
		"a word as id":         {write(".test.index", "8\nsix\n9\n"), "ind.python2.test.index: line 2: \"six\" is not a vertex: write one id in each line"},
		"an id twice":          {write(".test.index", "8\n6\n8\n"), "ind.python2.test.index: line 3: vertex 8 is there twice: copy the file again"},
		"a test that is not":   {write(".test.index", "1\n6\n8\n"), "ind.python2.test.index: its ids have to begin with 6, as ind.NAME.allx has so many rows: take all files from one place"},
		"a far test":           {write(".test.index", "6\n7\n8000\n"), "ind.python2.test.index: vertex 8000 is too far behind the 6 of ind.NAME.allx: take all files from one place"},
		"an unknown vertex":    {write(".graph", "(I1\n(I99\nlI0\n(I1\nld."), "ind.python2.graph: there is not a vertex 99, as there are 10, numbered from 0: take all files from one place"},
		"a dict of words":      {write(".graph", "(S'a'\n(I1\nld."), "ind.python2.graph: a vertex in it is not an integer"},
		"no list":              {write(".graph", "(I1\nI2\nd."), "ind.python2.graph: the neighbours of vertex 1 are not a list"},
		"a graph that is none": {swap(".graph", ".y"), "ind.python2.graph: it holds no dict of vertices and lists of neighbours: take the file from kimiyoung/planetoid"},
		"a file is missing":    {func(dir string) error { return os.Remove(filepath.Join(dir, "ind.python2.ty")) }, "ind.python2.ty on this machine: check the path"},
		"two graphs": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ind.other.x"), nil, 0o600)
		}, "holds the graphs other, python2: give the path of one, such as "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tiny(t)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			readtest.Refused(t, Open, dir, source.Options{}, c.want)
		})
	}
	readtest.Refused(t, Open, "../testdata/planetoid/python2", source.Options{Memory: 500}, "ind.python2: more memory is needed than is allowed: raise {dataset.memory}")
	const much = "ind.python2: more memory is needed than is allowed: raise {dataset.memory}"
	for name, pickle := range map[string]string{
		"values of a byte": strings.Repeat("N", 1<<20) + ".",
		"names of values":  "\x80\x02N" + strings.Repeat("q\x00", 1<<10) + "r\xff\x07\x00\x00" + strings.Repeat("0N", 1<<10) + strings.Repeat("N", 1<<19) + ".",
		"copies of text": "c_codecs\nencode\nq\x00(X\x00\x00\x10\x00" + strings.Repeat("x", 1<<20) + "X\x06\x00\x00\x00latin1tq\x01R" +
			strings.Repeat("h\x00h\x01R", 3) + strings.Repeat("0", 1<<18) + ".",
	} {
		dir := tiny(t)
		if err := write(".allx", pickle)(dir); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		readtest.Refused(t, Open, dir, source.Options{Memory: 6 << 20}, much)
	}
	readtest.Refused(t, Open, t.TempDir(), source.Options{Format: "planetoid"}, "holds none of Planetoid's files, ind.NAME.x, ind.NAME.graph and their like: check the path")
	readtest.Refused(t, Open, "planetoid_test.go", source.Options{Format: "planetoid"}, "planetoid_test.go is not one of Planetoid's files: give one called ind.NAME.x, or their folder")
}

// A list that is there many times by reference must not become as many edges.
func TestPicklesDoNotGrow(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\x80\x02}(")
	b.WriteString("K\x00](")
	b.Write(bytes.Repeat([]byte("K\x01"), 5000))
	b.WriteString("eq\x00")
	b.Write(bytes.Repeat([]byte("K\x01h\x00"), 5000))
	b.WriteString("u.")
	dir := tiny(t)
	if err := os.WriteFile(filepath.Join(dir, "ind.python2.graph"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	readtest.Refused(t, Open, dir, source.Options{}, "it lists more neighbours than a file of its size can hold")
	readtest.Within(t, 1<<20, func() {
		if v, err := unpickle(t.Context(), strings.NewReader("T\xff\xff\xff\x7fabc."), 9, new(source.Memory)); err == nil {
			t.Errorf("a claim of 2 GiB is %v", v)
		}
	})
	for name, pickle := range map[string]string{
		"lists":     strings.Repeat("]", 10000) + ".",
		"text":      "c_codecs\nencode\nq\x00(V" + strings.Repeat("x", 1<<16) + "\nVlatin1\ntq\x01R" + strings.Repeat("h\x00h\x01R", 100) + ".",
		"a far put": "K\x01r\xff\xff\xff\xff.",
		"no stack":  "K\x010" + "0.",
		"no mark":   "K\x01t.",
		"below":     "K\x01(0.",
	} {
		if _, err := unpickle(t.Context(), strings.NewReader(pickle), int64(len(pickle)), new(source.Memory)); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	if v, err := unpickle(t.Context(), strings.NewReader("\x80\x02K\x01(K\x02K\x032t1."), 16, new(source.Memory)); err == nil {
		t.Errorf("read %v where a mark is missing", v)
	}
}

func TestPickleStrings(t *testing.T) {
	for in, want := range map[string]any{
		`S'a\x00\n\\\''` + "\n.":                 pyBytes("a\x00\n\\'"),
		`S"it's"` + "\n.":                        pyBytes("it's"),
		"V\xe9\\u20ac\\U0001f600\n.":             pyText("\u00e9\u20ac\U0001f600"),
		"L-12L\n.":                               int64(-12),
		"\x8a\x02\x00\x80.":                      int64(-32768),
		"I01\n.":                                 true,
		"F0.5\n.":                                0.5,
		"G\x3f\xe0\x00\x00\x00\x00\x00\x00.":     0.5,
		"c_codecs\nencode\n(V\xff\nVlatin1\ntR.": pyBytes("\xff"),
	} {
		got, err := unpickle(t.Context(), strings.NewReader(in), int64(len(in)), new(source.Memory))
		if err != nil || fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
			t.Errorf("%q is %v: %v", in, got, err)
		}
	}
	for _, in := range []string{`S'a`, `S'\q'`, `S'\x1'`, `S'\'`, `Sa`, `V\u12`, `V\U11111111`, "Ix", "Fx", "\x8a\x09123456789"} {
		if v, err := unpickle(t.Context(), strings.NewReader(in+"\n."), int64(len(in))+2, new(source.Memory)); err == nil {
			t.Errorf("%q is %v", in, v)
		}
	}
}
