package tabular

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// learnt writes what a source has to be learnt: kind, names, and a row for each vertex.
func learnt(s graph.Source) string {
	m, columns := s.Meta(), s.Targets()
	var rows []string
	for v := range int(m.Vertices) {
		var cells []string
		for c := range m.Classes {
			switch m.Targets {
			case graph.YesOrNo:
				cells = append(cells, strings.Replace(fmt.Sprint(columns.YesOrNo[v*m.Classes+c]), "255", "-", 1))
			case graph.Numbers:
				cells = append(cells, strings.Replace(fmt.Sprint(columns.Numbers[v*m.Classes+c]), "NaN", "-", 1))
			}
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	if m.Targets == graph.OneClass {
		rows = []string{fmt.Sprint(s.Labels())}
	}
	return fmt.Sprintf("%s%v %d %s", m.Targets, m.ClassNames, m.Features, strings.Join(rows, ", "))
}

// Several columns of labels are a yes or no of each, or numbers, in files of each kind.
func TestColumnsOfLabels(t *testing.T) {
	const edges = "1,2\n2,3\n3,1\n"
	type row struct {
		ID    int64    `parquet:"id"`
		A     *float64 `parquet:"a,optional"`
		Note  string   `parquet:"note"`
		B     bool     `parquet:"b"`
		C     int32    `parquet:"c"`
		Label int64    `parquet:"label"`
	}
	rows := []row{{1, new(1.), "x", true, 0, 4}, {2, nil, "y", false, -1, 5}, {3, new(0.), "z", true, 1, 6}}
	field := func(name string, of arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: of, Nullable: true}
	}
	feather := arrowOf(t, []arrow.Field{field("c", arrow.PrimitiveTypes.Int8), field("id", arrow.PrimitiveTypes.Int64), field("a", arrow.BinaryTypes.String), field("b", arrow.FixedWidthTypes.Boolean)},
		[]string{`[{"id":1,"a":"1","b":true,"c":0},{"id":2,"a":"","b":false},{"id":3,"a":"0","b":true,"c":1}]`})
	abc := source.Options{LabelColumns: []string{"a", "b", "c"}}
	const yesOrNo = "1 1 0, - 0 -, 0 1 1"
	for name, c := range map[string]struct {
		files map[string]string
		o     source.Options
		want  string
	}{
		"csv":             {map[string]string{"labels.csv": "id,a,b,c\n1,1,1,0\n2,,0,nan\n3,0,1,1\n"}, source.Options{}, "multilabel[a b c] 0 " + yesOrNo},
		"csv, asked":      {map[string]string{"labels.csv": "note,c,id,b,A\nx,0,1,True,1\ny,-1,2,false,\nz,1,3,true,0\n"}, abc, "multilabel[A b c] 0 " + yesOrNo},
		"rows in parts":   {map[string]string{"labels.csv": "id,a,b,c\n3,,,1\n1,1,1,0\n2,,0,\n3,0,1,\n3,0,,1\n"}, source.Options{}, "multilabel[a b c] 0 " + yesOrNo},
		"numbered":        {map[string]string{"labels.csv": "v,label_0,label_1,x\n1,0.5,2,8\n2,,-1,8\n"}, source.Options{}, "regression[label_0 label_1] 0 0.5 2, - -1, - -"},
		"numbered, nodes": {map[string]string{"nodes.csv": "id,label_0,x,label_1\n1,0,7,1\n2,,8,0\n3,1,9,\n"}, source.Options{}, "multilabel[label_0 label_1] 1 0 1, - 0, 1 -"},
		"nodes":           {map[string]string{"nodes.csv": "id,a,b,x,c,label\n1,1,1,7,0,3\n2,,0,8,,4\n3,0,1,9,1,5\n"}, abc, "multilabel[a b c] 1 " + yesOrNo},
		"nodes.parquet":   {map[string]string{"nodes.parquet": parquetOf(t, rows, writing{})}, abc, "multilabel[a b c] 0 " + yesOrNo},
		"labels.feather":  {map[string]string{"labels.feather": feather}, abc, "multilabel[a b c] 0 " + yesOrNo},
		"features beside": {map[string]string{"nodes.csv": "id,x\n1,7\n2,8\n3,9\n", "labels.csv": "id,a,b,c\n1,1,1,0\n2,,0,-1\n3,0,1,1\n"}, abc, "multilabel[a b c] 1 " + yesOrNo},
		"as numbers":      {map[string]string{"labels.csv": "id,a,b\n1,1,0\n2,-1,0\n3,,1\n"}, source.Options{Task: "regression"}, "regression[a b] 0 1 0, -1 0, - 1"},
		"one of numbers":  {map[string]string{"labels.csv": "id,speed\n1,1\n2,0.5\n3,\n"}, source.Options{}, "regression[speed] 0 1, 0.5, -"},
		"floats": {map[string]string{"labels.parquet": parquetOf(t, []struct {
			ID    int64   `parquet:"id"`
			Speed float32 `parquet:"speed"`
		}{{1, 1}, {2, 0.5}, {3, float32(math.NaN())}}, writing{})}, source.Options{}, "regression[speed] 0 1, 0.5, -"},
		"no header":    {map[string]string{"labels.csv": "1,1.5\n2,0.5\n"}, source.Options{}, "regression[] 0 1.5, 0.5, -"},
		"one, asked":   {map[string]string{"nodes.csv": "id,speed,label\n1,1,0\n2,2,1\n3,5,0\n"}, source.Options{Task: "regression", LabelColumns: []string{"speed"}}, "regression[speed] 0 1, 2, 5"},
		"one class":    {map[string]string{"nodes.csv": "id,kind,x,y\n1,b,7,1\n2,a,8,2\n3,b,9,3\n"}, source.Options{LabelColumns: []string{"kind"}}, "[a b] 1 [1 0 1]"},
		"a lone yes":   {map[string]string{"labels.csv": "id,ill\n1,True\n2,\n3,False\n"}, source.Options{Task: "multilabel"}, "multilabel[ill] 0 1, -, 0"},
		"numbers late": {map[string]string{"labels.csv": "id,label\n" + strings.Repeat("1,3\n", 40_000) + "2,0.25\n"}, source.Options{}, "regression[label] 0 3, 0.25, -"},
	} {
		c.files["edges.csv"] = edges
		s, err := OpenCSV(t.Context(), folder(t, c.files), c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := learnt(s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if !slices.ContainsFunc(s.Notes(), func(n string) bool { return strings.Contains(n, ": targets are ") }) && s.Labels() == nil {
			t.Errorf("%s: %q", name, s.Notes())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What is wrong in a column of labels is refused with the file, the line and the column.
func TestColumnsOfLabelsThatCannotBe(t *testing.T) {
	var wide strings.Builder
	for i := range graph.MaxTargets + 1 {
		fmt.Fprintf(&wide, ",c%d", i)
	}
	ab := []string{"a", "b"}
	for name, c := range map[string]struct {
		files map[string]string
		o     source.Options
		want  string
	}{
		"a word":             {map[string]string{"labels.csv": "id,a,b\n1,1,0\n2,0,maybe\n"}, source.Options{}, `labels.csv, line 3: the label b "maybe" is not a number: write 0 or 1 of each label, or numbers, and nothing where one is missing, or name other columns with {dataset.label_columns}`},
		"too large":          {map[string]string{"labels.csv": "id,a,b\n1,1,0\n2,1e99,1\n"}, source.Options{}, `labels.csv, line 3: the label a "1e99" does not fit in 32 bits: scale it down`},
		"infinite":           {map[string]string{"labels.csv": "id,a,b\n1,1,-inf\n"}, source.Options{}, "labels.csv, line 2: the label b is -inf: write a finite number, or leave it empty"},
		"neither":            {map[string]string{"nodes.csv": "id,x,a,b\n1,9,1,0\n2,9,1,2\n"}, source.Options{Task: "multilabel", LabelColumns: ab}, "nodes.csv, line 3: the label b is 2, and of several labels each is 0 or 1: give {dataset.task} regression to learn numbers"},
		"too few cells":      {map[string]string{"labels.csv": "id,a,b\n1,1,0\n2,1\n"}, source.Options{}, "labels.csv, line 3: there are 2 columns and the first row has 3"},
		"two rows":           {map[string]string{"labels.csv": "id,a,b\n1,1,0\n1,,1\n"}, source.Options{}, "labels.csv, line 3: the id 1 has the label b 1 here and 0 in an earlier row: leave one of them"},
		"nothing":            {map[string]string{"labels.csv": "id,a,b\n1,,\n2,,nan\n"}, source.Options{}, "labels.csv: no vertex has a target: all are missing: write an id and its label in each row"},
		"a stranger":         {map[string]string{"features.csv": "1,1\n2,1\n", "labels.csv": "id,a,b\n9,1,1\n"}, source.Options{}, "labels.csv, line 2: labels without vertices, the id 9 is neither in"},
		"one class":          {map[string]string{"labels.csv": "id,a,b\n1,1,0\n"}, source.Options{Task: "class"}, "labels.csv has the labels a, b of each vertex, and {dataset.task} is class, of which a vertex has one: name one column with {dataset.label_columns}"},
		"no class":           {map[string]string{"labels.csv": "id,a\n1,1\n2,0.5\n"}, source.Options{Task: "class"}, "labels.csv, line 3: the label 0.5 is not an integer"},
		"not there":          {map[string]string{"nodes.csv": "id,a,x\n1,1,0\n"}, source.Options{LabelColumns: ab}, "nodes.csv has no column called b among id, a, x: check {dataset.label_columns}"},
		"not in labels":      {map[string]string{"labels.csv": "id,a,x\n1,1,0\n"}, source.Options{LabelColumns: ab}, "labels.csv has no column called b among id, a, x: check {dataset.label_columns}"},
		"no header":          {map[string]string{"labels.csv": "1,1,0\n2,1,0\n"}, source.Options{LabelColumns: ab}, "labels.csv, line 1: there is no header line that names the columns, and {dataset.label_columns} asks for a, b: put a line such as id,a first"},
		"twice":              {map[string]string{"labels.csv": "id,a,b\n1,1,0\n"}, source.Options{LabelColumns: []string{"a", "A"}}, "{dataset.label_columns} names the column a of labels.csv twice: name it once"},
		"the id":             {map[string]string{"nodes.csv": "id,a,x\n1,1,0\n"}, source.Options{LabelColumns: []string{"a", "id"}}, "{dataset.label_columns} names id, which says of nodes.csv what vertex a row is about: leave it out"},
		"the id of labels":   {map[string]string{"labels.csv": "id,a,x\n1,1,0\n"}, source.Options{LabelColumns: []string{"a", "id"}}, "{dataset.label_columns} names id, which says of labels.csv what vertex a row is about: leave it out"},
		"ids are labels":     {map[string]string{"labels.csv": "v,w,x\n1,1,0\n"}, source.Options{LabelColumns: []string{"v", "w", "x"}}, "labels.csv has no column called id beside the labels v, w, x: call the column with the ids so"},
		"one name":           {map[string]string{"labels.csv": "id,a,b,a\n1,1,0,1\n"}, source.Options{}, "labels.csv has two columns of labels called a: give one of them another name"},
		"labels and one":     {map[string]string{"nodes.csv": "id,label,label_0,label_1\n1,1,0,1\n"}, source.Options{}, "nodes.csv has both label_0 and label: leave one of them, or give it another name"},
		"too many":           {map[string]string{"labels.csv": "id" + wide.String() + "\n1" + strings.Repeat(",1", graph.MaxTargets+1) + "\n"}, source.Options{}, "labels.csv has 4097 columns of labels, and at most 4096 can be taken: name fewer with {dataset.label_columns}"},
		"too many of a node": {map[string]string{"nodes.csv": "id" + strings.ReplaceAll(wide.String(), "c", "label_") + "\n1" + strings.Repeat(",1", graph.MaxTargets+1) + "\n"}, source.Options{}, "nodes.csv has 4097 columns of labels, and at most 4096 can be taken: name fewer with {dataset.label_columns}"},
		"lists": {map[string]string{"labels.parquet": parquetOf(t, []struct {
			ID int64   `parquet:"id"`
			A  []int64 `parquet:"a,list"`
			B  int64   `parquet:"b"`
		}{{1, []int64{1}, 1}}, writing{})}, source.Options{}, "labels.parquet: the column a has a type that can't be taken: labels are numbers or the names of classes"},
		"a row of parquet": {map[string]string{"labels.parquet": parquetOf(t, []struct {
			ID int64   `parquet:"id"`
			A  float64 `parquet:"a"`
			B  string  `parquet:"b"`
		}{{1, 0.5, "7"}, {2, math.Inf(1), "x"}}, writing{})}, source.Options{}, "labels.parquet, row 2: the label a is +Inf: write a finite number, or leave it empty"},
		"memory": {map[string]string{"labels.csv": "id" + wide.String()[:1000] + "\n1" + strings.Repeat(",1", strings.Count(wide.String()[:1000], ",")) + "\n"}, source.Options{Memory: 1000}, "do not fit in 1000 bytes of memory"},
	} {
		c.files["edges.csv"] = "1,2\n2,3\n"
		err := readThrough(t, OpenCSV, folder(t, c.files), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A table of nodes may have as many features as a line holds: finding two of one name takes no
// time for each pair of them.
func TestNamesOfManyColumns(t *testing.T) {
	columns := make([]nodeColumn, 1<<19)
	for i := range columns {
		columns[i] = nodeColumn{name: fmt.Sprintf("feature_%d", i), number: true}
	}
	if a, b := twice(columns, nil, false); b >= 0 {
		t.Errorf("columns %d and %d are taken for one", a, b)
	}
	columns[len(columns)-1].name = "FEATURE_7"
	if a, b := twice(columns, nil, false); a != 7 || b != len(columns)-1 {
		t.Errorf("columns %d and %d", a, b)
	}
}
