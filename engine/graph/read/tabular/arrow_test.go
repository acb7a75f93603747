package tabular

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// arrowOf writes columns that are given as JSON, as many batches as there are rows
// of it.
func arrowOf(t testing.TB, fields []arrow.Field, batches []string, options ...ipc.Option) string {
	t.Helper()
	var buf bytes.Buffer
	schema := arrow.NewSchema(fields, nil)
	w, err := ipc.NewFileWriter(&buf, append(options, ipc.WithSchema(schema))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range batches {
		record, _, err := arrowarray.RecordFromJSON(arrowmemory.DefaultAllocator, schema, strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(record); err != nil {
			t.Fatal(err)
		}
		record.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func field(name string, of arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: of, Nullable: true}
}

var (
	words     = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	edgeInts  = []arrow.Field{field("src", arrow.PrimitiveTypes.Int64), field("dst", arrow.PrimitiveTypes.Int64)}
	someEdges = `[{"src":1,"dst":2},{"src":2,"dst":3}]`
)

func TestArrowTypes(t *testing.T) {
	i := arrow.PrimitiveTypes
	for name, c := range map[string]struct {
		src, dst, weight arrow.DataType
		rows             string
		want             string
	}{
		"bytes":           {i.Int8, i.Uint8, i.Float32, `[{"src":-1,"dst":200,"weight":0.5}]`, "-1>200:0.5"},
		"16 bits":         {i.Int16, i.Uint16, i.Int16, `[{"src":-300,"dst":60000,"weight":-3}]`, "-300>60000:-3"},
		"32 bits":         {i.Int32, i.Uint32, i.Float64, `[{"src":-70000,"dst":4000000000,"weight":1e3}]`, "-70000>4000000000:1000"},
		"uint64":          {i.Uint64, i.Int64, i.Uint64, `[{"src":7,"dst":8,"weight":3}]`, "7>8:3"},
		"beyond int64":    {i.Uint64, i.Int64, i.Float32, `[{"src":18446744073709551615,"dst":-8,"weight":3}]`, "18446744073709551615>-8:3"},
		"half floats":     {i.Int64, i.Int64, arrow.FixedWidthTypes.Float16, `[{"src":1,"dst":2,"weight":-1.5}]`, "1>2:-1.5"},
		"strings":         {arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, i.Float32, `[{"src":"a","dst":"é","weight":1}]`, "a>é:1"},
		"dictionaries":    {words, words, i.Float32, `[{"src":"a","dst":"b","weight":1},{"src":"b","dst":"a","weight":2}]`, "a>b:1 b>a:2"},
		"strings of ints": {arrow.BinaryTypes.String, i.Int64, i.Float32, `[{"src":"12","dst":12,"weight":1}]`, "12>12:1"},
		"ints and text":   {arrow.BinaryTypes.String, i.Int64, i.Float32, `[{"src":"x","dst":12,"weight":1}]`, "x>12:1"},
	} {
		file := arrowOf(t, []arrow.Field{field("src", c.src), field("dst", c.dst), field("weight", c.weight)}, []string{c.rows, c.rows})
		s := mustOpenParquet(t, filepath.Join(folder(t, map[string]string{"e.arrow": file}), "e.arrow"))
		for range 2 {
			if got := strings.Join(edgesOf(t, s), " "); got != c.want+" "+c.want {
				t.Errorf("%s: %s, want %s twice", name, got, c.want)
			}
		}
	}
}

func TestArrowTables(t *testing.T) {
	id := field("id", arrow.PrimitiveTypes.Int64)
	for name, of := range map[string]arrow.DataType{
		"lists": arrow.ListOf(arrow.PrimitiveTypes.Float32), "large lists": arrow.LargeListOf(arrow.PrimitiveTypes.Int16),
		"fixed lists": arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float64),
	} {
		for _, o := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd(), ipc.WithDictionaryDeltas(false)} {
			s := mustOpenParquet(t, folder(t, map[string]string{
				"edges.feather":  arrowOf(t, edgeInts, []string{someEdges}, o),
				"features.arrow": arrowOf(t, []arrow.Field{id, field("features", of)}, []string{`[{"id":3,"features":[1,2]}]`, `[{"id":4,"features":[5,-6]},{"id":1,"features":[0,7]}]`}, o),
				"labels.arrow":   arrowOf(t, []arrow.Field{id, field("label", arrow.PrimitiveTypes.Float64)}, []string{`[{"id":1,"label":2},{"id":2,"label":null}]`}, o),
				"splits.arrow":   arrowOf(t, []arrow.Field{id, field("split", words)}, []string{`[{"id":1,"split":"train"},{"id":4,"split":null},{"id":2,"split":"test"}]`}, o),
			}))
			got := fmt.Sprint(names(s), " ", featuresOf(t, s), s.Labels(), s.Splits())
			if want := "1 2 3 4 map[1:[0 7] 3:[1 2] 4:[5 -6]] [2 -1 -1 -1] [[1 3 0 0]]"; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

func TestColumnsThatCannotBeTakenAreRefused(t *testing.T) {
	i := arrow.PrimitiveTypes
	id, good := field("id", i.Int64), arrowOf(t, edgeInts, []string{someEdges})
	for name, c := range map[string]struct {
		table string
		cols  []arrow.Field
		rows  string
		want  string
	}{
		"a null id":             {"edges", edgeInts, `[{"src":1,"dst":2},{"src":2,"dst":null}]`, "edges.arrow, row 2: an id in column dst is missing: write a source and a target"},
		"an empty id":           {"edges", []arrow.Field{field("src", arrow.BinaryTypes.String), field("dst", i.Int64)}, `[{"src":"","dst":2}]`, "edges.arrow, row 1: an id in column src is empty"},
		"floating ids":          {"edges", []arrow.Field{field("src", i.Float64), field("dst", i.Int64)}, `[{"src":1,"dst":2}]`, "edges.arrow: the column src has a type that can't be taken: ids are integers or strings"},
		"dates as ids":          {"edges", []arrow.Field{field("src", arrow.FixedWidthTypes.Date32), field("dst", i.Int64)}, `[]`, "edges.arrow: the column src has a type that can't be taken"},
		"other names":           {"edges", []arrow.Field{field("a", i.Int64), field("b", i.Int64)}, `[]`, "edges.arrow has no columns called src and dst among a, b: call"},
		"one column":            {"edges", []arrow.Field{field("src", i.Int64)}, `[]`, "edges.arrow has 1 columns: write a source and a target"},
		"nodes without columns": {"nodes", nil, `[{}]`, "nodes.arrow has 0 columns: write an id and its features"},
		"no rows":               {"edges", edgeInts, `[]`, "edges.arrow holds no rows: write a source and a target"},
		"weights of text":       {"edges", append([]arrow.Field{field("weight", arrow.BinaryTypes.String)}, edgeInts...), someEdges, "the column weight has a type that can't be taken: weights are numbers"},
		"a null weight":         {"edges", append([]arrow.Field{field("weight", i.Float32)}, edgeInts...), someEdges, "edges.arrow, row 1: the weight is missing: write a number"},
		"a null feature":        {"features", []arrow.Field{id, field("x", i.Float32)}, `[{"id":1,"x":1},{"id":2,"x":null}]`, "features.arrow, row 2: the feature x is missing: write a number, 0 if there is nothing"},
		"features of text":      {"features", []arrow.Field{id, field("x", arrow.BinaryTypes.String)}, `[{"id":1,"x":"1"}]`, "features.arrow: the column x has a type that can't be taken: features are numbers"},
		"a feature too large":   {"features", []arrow.Field{id, field("x", i.Float64)}, `[{"id":1,"x":1e300}]`, "features.arrow, row 1: the feature x \"1e+300\" does not fit in 32 bits"},
		"lists of other length": {"features", []arrow.Field{id, field("features", arrow.ListOf(i.Float32))}, `[{"id":1,"features":[1,2]},{"id":2,"features":[1]}]`, "features.arrow, row 2: there are 1 features and the first row has 2: give each id as many"},
		"a null list":           {"features", []arrow.Field{id, field("features", arrow.ListOf(i.Float32))}, `[{"id":1,"features":[1,2]},{"id":2,"features":null}]`, "features.arrow, row 2: there are 0 features"},
		"an empty list":         {"features", []arrow.Field{id, field("features", arrow.ListOf(i.Float32))}, `[{"id":1,"features":[]}]`, "features.arrow, row 1: the list of features is empty"},
		"a null in a list":      {"features", []arrow.Field{id, field("features", arrow.ListOf(i.Float32))}, `[{"id":1,"features":[1,2]},{"id":2,"features":[1,null]}]`, "features.arrow, row 2: a feature is missing"},
		"a label too large":     {"labels", []arrow.Field{id, field("label", i.Uint64)}, `[{"id":1,"label":18446744073709551615}]`, "labels.arrow, row 1: the label 9223372036854775807 is not between 0 and"},
		"labels of dates":       {"labels", []arrow.Field{id, field("label", arrow.FixedWidthTypes.Date32)}, `[]`, "labels.arrow: the column label has a type that can't be taken: labels are numbers or the names of classes"},
		"a broken label":        {"labels", []arrow.Field{id, field("label", i.Float32)}, `[{"id":1,"label":-7.0}]`, "labels.arrow, row 1: the label -2 is not between 0 and"},
		"numbers as split":      {"splits", []arrow.Field{id, field("split", i.Int8)}, `[{"id":1,"split":1}]`, "splits.arrow: the column split has a type that can't be taken: splits are the words"},
		"an unknown part":       {"splits", []arrow.Field{id, field("split", words)}, `[{"id":1,"split":"dev"}]`, "splits.arrow, row 1: \"dev\" is not a part of a split"},
	} {
		files := map[string]string{"edges.arrow": good}
		files[c.table+".arrow"] = arrowOf(t, c.cols, []string{c.rows})
		err := readThrough(t, OpenParquet, folder(t, files), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestDamagedArrowIsRefused(t *testing.T) {
	cols := []arrow.Field{field("src", words), field("dst", arrow.BinaryTypes.String)}
	whole := arrowOf(t, cols, []string{`[{"src":"a","dst":"b"},{"src":"b","dst":"c"}]`}, ipc.WithLZ4())
	dir := t.TempDir()
	path := filepath.Join(dir, "e.arrow")
	open := func(file []byte) error {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenParquet(t.Context(), path, source.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = drain(t.Context(), s)
		return err
	}
	if err := open([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"cut short": whole[:len(whole)-20], "no arrow": strings.Repeat("1,2\n", 100), "empty": "", "first Feather": "FEA1" + strings.Repeat("\x00", 100) + "FEA1"} {
		err := open([]byte(file))
		if err == nil || !strings.HasPrefix(err.Error(), "e.arrow is not a readable Arrow file") || !strings.HasSuffix(err.Error(), ": write it again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused := 0
	for i := range len(whole) {
		for _, with := range []byte{0x55, 0xff} {
			b := []byte(whole)
			b[i] ^= with
			if open(b) != nil {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}
