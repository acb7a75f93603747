package tabular

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/records"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// readThrough opens a source and reads it to its end.
func readThrough(t *testing.T, open opener, path string, o source.Options) error {
	t.Helper()
	s, err := open(t.Context(), path, o)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = drain(t.Context(), s)
	return err
}

func TestWhatCannotBeTakenIsRefusedInASentence(t *testing.T) {
	const edges = "1,2\n2,3\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"an empty file":                 {map[string]string{"edges.csv": ""}, "edges.csv is empty: write a source and a target in each row"},
		"comments only":                 {map[string]string{"edges.csv": "# none\n\n"}, "edges.csv holds no rows: write a source and a target in each row"},
		"a header only":                 {map[string]string{"edges.csv": "src,dst\n"}, "edges.csv holds no rows but its header line: write"},
		"one column":                    {map[string]string{"edges.csv": "1\n2\n"}, "edges.csv, line 1: there is only one column: write a source and a target"},
		"a million columns":             {map[string]string{"edges.csv": edges, "features.csv": strings.Repeat(",", records.MaxFields)}, "features.csv, line 1: there are more than 1056768 columns: make them fewer"},
		"a million columns later":       {map[string]string{"edges.csv": edges, "features.csv": "1,2\n" + strings.Repeat(",", records.MaxFields)}, "features.csv, line 2: there are more than 1056768 columns: make them fewer"},
		"too few columns":               {map[string]string{"edges.csv": "1,2\n3\n"}, "edges.csv, line 2: there are 1 columns and the first row has 2: write a source"},
		"too many columns":              {map[string]string{"edges.csv": "1,2\n3,4,5\n"}, "edges.csv, line 2: there are 3 columns and the first row has 2"},
		"many columns without a header": {map[string]string{"edges.csv": "1,2,3,4\n"}, "edges.csv, line 1: there are 4 columns and no header line says what they are: put a line such as src,dst,weight first"},
		"a header of other names":       {map[string]string{"edges.csv": "citing,cited\n1,2\n"}, "edges.csv, line 1: the line seems to name columns, but not src and dst: call"},
		"an empty id":                   {map[string]string{"edges.csv": "1,2\n,3\n"}, "edges.csv, line 2: an id is empty"},
		"an id in another encoding":     {map[string]string{"edges.csv": "a,b\nc,\xe9t\xe9\n"}, "edges.csv, line 2: the id \"\\xe9t\\xe9\" is not UTF-8: save the file as UTF-8"},
		"text in UTF-16":                {map[string]string{"edges.csv": "\xff\xfe1\x00,\x002\x00\n\x00"}, "edges.csv is text in UTF-16: save it as UTF-8"},
		"a word as weight":              {map[string]string{"edges.csv": "1,2,0.5\n2,3,much\n"}, "edges.csv, line 2: the weight \"much\" is not a number: write one with a decimal point"},
		"a decimal comma":               {map[string]string{"edges.csv": "1;2;0,5\n2;3;1,5\n"}, "edges.csv, line 1: the weight \"0,5\" is not a number"},
		"an empty weight":               {map[string]string{"edges.csv": "1,2,0.5\n2,3,\n"}, "edges.csv, line 2: the weight is empty: write a number, 0 if there is nothing"},
		"weight NaN":                    {map[string]string{"edges.csv": "1,2,NaN\n2,3,1\n"}, "edges.csv, line 1: the weight is NaN: write a finite number"},
		"weight inf":                    {map[string]string{"edges.csv": "1,2,1\n2,3,-inf\n"}, "edges.csv, line 2: the weight is -inf: write a finite number"},
		"weight too large":              {map[string]string{"edges.csv": "1,2,1e39\n"}, "edges.csv, line 1: the weight \"1e39\" does not fit in 32 bits"},
		"a short row behind two lines":  {map[string]string{"edges.csv": "a,\"b\nc\"\nd\n"}, "edges.csv, line 3: there are 1 columns and the first row has 2"},
		"an open quote":                 {map[string]string{"edges.csv": "1,2\n\"3,4\n5,6\n"}, "edges.csv, line 2: a quote is not closed: close it"},
		"an open quote at first":        {map[string]string{"edges.csv": "\"3,4\n5,6\n"}, "edges.csv: a quote is not closed: close it"},
		"text behind a quote":           {map[string]string{"edges.csv": "1,2\n\"3\"x,4\n"}, "edges.csv, line 2: text follows a closing quote"},
		"a long line":                   {map[string]string{"edges.csv": "1,2\n1," + strings.Repeat("x", source.MaxLine) + "\n"}, "edges.csv, line 2: the line is longer than 65536 bytes"},
		"a line without an end":         {map[string]string{"edges.csv": "1,2\n1," + strings.Repeat("x", 3<<20)}, "edges.csv, line 2: the line is longer than 65536 bytes"},
		"an endless quote":              {map[string]string{"edges.csv": "1,2\n3,\"" + strings.Repeat("x\n", 3<<19)}, "edges.csv, line 2: the line is longer than 65536 bytes"},
		"rows of other widths":          {map[string]string{"labels.csv": "1,0\n", "edges.csv": edges, "features.csv": "1,2,3\n2,3\n"}, "features.csv, line 2: there are 2 columns and the first row has 3: write an id and its features"},

		"a word as feature":     {map[string]string{"edges.csv": edges, "features.csv": "1,0.5,1\n2,x,1\n"}, "features.csv, line 2: the feature in column 2 \"x\" is not a number"},
		"feature NaN":           {map[string]string{"edges.csv": edges, "features.csv": "id,a,b\n1,0.5,nan\n"}, "features.csv, line 2: the feature in column 3 is nan: write a finite number"},
		"feature inf":           {map[string]string{"edges.csv": edges, "features.csv": "1,Infinity\n"}, "features.csv, line 1: the feature in column 2 is Infinity"},
		"an empty feature":      {map[string]string{"edges.csv": edges, "features.csv": "1,2,3\n2,,3\n"}, "features.csv, line 2: the feature in column 2 is empty"},
		"two rows for one id":   {map[string]string{"edges.csv": edges, "features.csv": "1,0.5\n2,1\n1,0.5\n"}, "features.csv, line 3: the id 1 has a row already: leave one row for each id"},
		"an empty features id":  {map[string]string{"edges.csv": edges, "features.csv": "1,0.5\n,1\n"}, "features.csv, line 2: an id is empty: write an id and its features"},
		"features without rows": {map[string]string{"edges.csv": edges, "features.csv": "id,a\n"}, "features.csv holds no rows but its header line"},

		"labels that disagree":     {map[string]string{"edges.csv": edges, "labels.csv": "1,0\n2,1\n1,1\n"}, "labels.csv, line 3: the id 1 has the label 1 here and 0 in an earlier row: leave one of them"},
		"a broken label":           {map[string]string{"edges.csv": edges, "labels.csv": "1,0\n2,1e99\n"}, "labels.csv, line 2: the label \"1e99\" is not an integer"},
		"a label below -1":         {map[string]string{"edges.csv": edges, "labels.csv": "1,-2\n"}, "labels.csv, line 1: the label -2 is not between 0 and 1048575"},
		"a huge label":             {map[string]string{"edges.csv": edges, "labels.csv": "1,1048576\n"}, "labels.csv, line 1: the label 1048576 is not between 0 and 1048575"},
		"no labels at all":         {map[string]string{"edges.csv": edges, "labels.csv": "1,\n2,-1\n3,nan\n"}, "labels.csv gives no vertex a label: write an id and its label in each row, or remove the file"},
		"columns of labels":        {map[string]string{"edges.csv": edges, "labels.csv": "1,2,3\n"}, "labels.csv, line 1: there are 3 columns and no header line says which"},
		"names of labels":          {map[string]string{"edges.csv": edges, "labels.csv": "v,x,y\n1,2,3\n"}, "labels.csv has no columns called id and label among v, x, y: call them so"},
		"labels without vertices":  {map[string]string{"edges.csv": edges, "features.csv": "1,0.5\n", "labels.csv": "1,0\n9,1\n"}, "labels.csv, line 2: labels without vertices, the id 9 is neither in edges.csv nor in features.csv: add it there or remove the row"},
		"labels of other names":    {map[string]string{"edges.csv": edges, "features.csv": "1,0.5\n", "labels.csv": "1,0\n02,1\n"}, "labels.csv, line 2: labels without vertices, the id \"02\" is neither"},
		"splits without vertices":  {map[string]string{"edges.csv": edges, "labels.csv": "1,0\n", "splits.csv": "id,split\n7,train\n"}, "splits.csv, line 2: splits without vertices, the id 7 is neither in edges.csv nor in labels.csv"},
		"splits that overlap":      {map[string]string{"edges.csv": edges, "splits.csv": "1,train\n2,val\n1,test\n"}, "splits.csv, line 3: splits overlap, the id 1 is in test here and in train in an earlier row: leave it in one part"},
		"overlap in one of splits": {map[string]string{"edges.csv": edges, "splits.csv": "1,train,test\n1,train,val\n"}, "splits.csv, line 2: splits overlap, the id 1 is in val here and in test"},
		"an unknown part":          {map[string]string{"edges.csv": edges, "splits.csv": "1,train\n2,holdout\n"}, "splits.csv, line 2: \"holdout\" is not a part of a split: write train, val or test, or leave it empty"},
		"names of splits":          {map[string]string{"edges.csv": edges, "splits.csv": "id,x,y\n1,train,test\n"}, "splits.csv has no columns called id and split, or split_0, split_1 and so on, among id, x, y"},

		"two files of edges": {map[string]string{"edges.csv": edges, "edges.tsv": "1\t2\n"}, "holds both edges.csv and edges.tsv: leave one of them"},
		"no edges":           {map[string]string{"labels.csv": "1,0\n"}, "holds no edges: put a file edges.csv there, or name the edge file itself"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readThrough(t, OpenCSV, folder(t, c.files), source.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\n") || !strings.Contains(err.Error(), ": ") {
				t.Errorf("not one sentence with a remedy: %v", err)
			}
		})
	}
}

func TestEmptyFilesAreCalledEmpty(t *testing.T) {
	for name, open := range map[string]opener{"edges.parquet": OpenParquet, "edges.arrow": OpenParquet, "edges.csv": OpenCSV} {
		path := filepath.Join(folder(t, map[string]string{name: ""}), name)
		err := readThrough(t, open, path, source.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), name+" is ") || !strings.Contains(err.Error(), "is empty") || !strings.Contains(err.Error(), ": write ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A table without rows is whole.
	none := folder(t, map[string]string{"edges.parquet": parquetOf(t, []edgeRow{}, writing{})})
	if err := readThrough(t, OpenParquet, none, source.Options{}); err == nil || !strings.Contains(err.Error(), "edges.parquet holds no rows") {
		t.Errorf("no rows: %v", err)
	}
}

func TestOnlyPlainFilesAreOpened(t *testing.T) {
	dir := folder(t, map[string]string{"labels.csv": "1,0\n"})
	if err := os.Mkdir(filepath.Join(dir, "edges.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := readThrough(t, OpenCSV, dir, source.Options{}); err == nil || !strings.HasSuffix(err.Error(), "edges.csv is not a regular file: put the table itself there") {
		t.Error(err)
	}
}

// TestOddRowsAreSeenAtOnce has them after the rows that the layout is chosen by, where
// fastEdges reads.
func TestOddRowsAreSeenAtOnce(t *testing.T) {
	for row, want := range map[string]string{
		"1,2,3,4":    "edges.csv, line 101: there are 4 columns and the first row has 3",
		"1,2":        "edges.csv, line 101: there are 2 columns and the first row has 3",
		"1,,3":       "edges.csv, line 101: an id is empty",
		"1,2,\"3\"x": "edges.csv, line 101: text follows a closing quote",
	} {
		_, err := OpenCSV(t.Context(), folder(t, map[string]string{"edges.csv": strings.Repeat("1,2,3\n", 100) + row + "\n1,2,3\n"}), source.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
}

func TestDamagedGzipIsRefused(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 1000 {
		if _, err := z.Write([]byte("1,2\n3,4\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	whole := packed.Bytes()
	wrong := bytes.Clone(whole)
	wrong[len(wrong)-5] ^= 1
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"cut short":        {whole[:len(whole)-9], "edges.csv.gz ends in the middle of its compressed data: copy it again"},
		"cut in the head":  {whole[:5], "edges.csv.gz ends in the middle of its compressed data: copy it again"},
		"a wrong checksum": {wrong, "edges.csv.gz is not an intact gzip file"},
		"text":             {[]byte("1,2\n3,4\nand more of it"), "edges.csv.gz is not an intact gzip file"},
	} {
		path := filepath.Join(t.TempDir(), "edges.csv.gz")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readThrough(t, OpenCSV, path, source.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	dir := folder(t, map[string]string{"edges.csv": strings.Repeat("1,2\n", 1<<20), "edges2.csv": ""})
	why := errors.New("the client hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := OpenCSV(ctx, dir, source.Options{}); !errors.Is(err, why) {
		t.Errorf("opening: %v", err)
	}
	s := mustOpen(t, dir)
	ctx, cancel = context.WithCancelCause(t.Context())
	batches := 0
	err := s.Edges(ctx, func(graph.EdgeBatch) error {
		batches++
		cancel(why)
		return nil
	})
	if !errors.Is(err, why) || batches != 1 {
		t.Errorf("%v after %d batches", err, batches)
	}
}

func TestAnErrorOfTheReaderComesBackAsItIs(t *testing.T) {
	s := mustOpen(t, folder(t, map[string]string{"edges.csv": "1,2\n", "features.csv": "1,2\n"}))
	stop := errors.New("enough")
	if err := s.Edges(t.Context(), func(graph.EdgeBatch) error { return stop }); err != stop { //nolint:errorlint // the very one is promised
		t.Error(err)
	}
	if err := s.Features(t.Context(), func(graph.FeatureBatch) error { return stop }); err != stop { //nolint:errorlint // the very one is promised
		t.Error(err)
	}
}

func TestAFileThatChangesIsRefused(t *testing.T) {
	for name, after := range map[string]string{"another id": "1,2\n2,9\n", "text": "1,2\n2,x\n", "fewer": "1,2\n", "more": "1,2\n2,1\n1,1\n"} {
		dir := folder(t, map[string]string{"edges.csv": "1,2\n2,1\n"})
		s := mustOpen(t, dir)
		if err := os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(after), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := drain(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "edges.csv was changed while it was read") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var dense, sparse, text strings.Builder
	for i := range 60_000 {
		for _, b := range []struct {
			*strings.Builder
			id string
		}{{&dense, itoa(i)}, {&sparse, itoa(i * 1_000_003)}, {&text, "vertex-" + itoa(i)}} {
			b.WriteString(b.id)
			b.WriteString(",")
			b.WriteString(b.id)
			b.WriteString("\n")
		}
	}
	const bound = 512 << 10
	for name, file := range map[string]string{"sparse": sparse.String(), "text": text.String()} {
		err := readThrough(t, OpenCSV, folder(t, map[string]string{"edges.csv": file}), source.Options{Memory: bound})
		if err == nil || err.Error() != "the ids, labels and splits of the graph in edges.csv do not fit in 512.0 KiB of memory: allow more, or number the vertices 0, 1, 2 and so on, which needs least" {
			t.Errorf("%s: %v", name, err)
		}
		if err := readThrough(t, OpenCSV, folder(t, map[string]string{"edges.csv": file}), source.Options{Memory: 8 << 20}); err != nil {
			t.Errorf("%s with enough: %v", name, err)
		}
	}
	if err := readThrough(t, OpenCSV, folder(t, map[string]string{"edges.csv": dense.String()}), source.Options{Memory: bound}); err != nil {
		t.Errorf("dense: %v", err)
	}
	if err := readThrough(t, OpenCSV, folder(t, map[string]string{"edges.csv": dense.String(), "labels.csv": "1,0\n"}), source.Options{Memory: 200 << 10}); err == nil {
		t.Error("labels cost nothing")
	}
}
