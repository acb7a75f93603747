package tabular

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// idsIn returns the ids of a file, row by row.
func idsIn(ctx context.Context, t *testing.T, name, text string, columns int) (rows []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err = ReadIDs(ctx, path, columns, 0, func(ids IDs) error {
		for row := range ids.Rows {
			var of []string
			for column := range columns {
				of = append(of, string(ids.At(row, column)))
			}
			rows = append(rows, strings.Join(of, "|"))
		}
		return nil
	})
	return rows, err
}

// Ids come as they are written, whatever else the table has.
func TestOnlyIDs(t *testing.T) {
	for _, c := range []struct {
		name, text string
		columns    int
		want       string
	}{
		{"a.csv", "1,2\n3,x\n", 2, "[1|2 3|x]"},
		{"a.tsv", "score\ttarget\tsource\nno number\t007\ta b\n", 2, "[a b|007]"},
		{"a.txt", "# a comment\n1 2\n-3 4\n", 2, "[1|2 -3|4]"},
		{"a.csv", "source,target,score\n\"a,b\",c,1.5\n", 2, "[a,b|c]"},
		{"a.csv", "5\n007\n", 1, "[5 007]"},
		{"a.txt", "id\nNew York\n\n\"a,b\"\n", 1, "[New York a,b]"},
		{"a.csv", "name,id\nx,1\ny,2\n", 1, "[1 2]"},
	} {
		if got, err := idsIn(t.Context(), t, c.name, c.text, c.columns); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%q has the ids %q, want %s: %v", c.text, got, c.want, err)
		}
	}
	for want, c := range map[string]struct {
		text    string
		columns int
	}{
		"there is only one column: write a source and a target in each row":                                                {"1\n2\n", 2},
		"a.csv, line 2: an id is empty: write an id in each row":                                                           {"id,x\n,y\n", 1},
		"a.csv, line 1: there are 2 columns, and none is called id in a header: give one column of ids, or call theirs id": {"4,x\n5,y\n", 1},
		"a.csv, line 1: there are 3 columns":                                                                               {"src,dst,score\n1,2,0.5\n", 1},
		"holds no rows but its header line: write an id in each row":                                                       {"id\n", 1},
		"a.csv, line 2: there are 3 columns and the first row has 2":                                                       {"1,2\n1,2,3\n", 2},
	} {
		if got, err := idsIn(t.Context(), t, "a.csv", c.text, c.columns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %s", c.text, got, err, want)
		}
	}
	type pair struct {
		Src int64 `parquet:"src"`
		Dst int64 `parquet:"dst"`
	}
	pairs := parquetOf(t, []pair{{1, 2}}, writing{})
	if got, err := idsIn(t.Context(), t, "a.parquet", pairs, 1); err == nil || !strings.Contains(err.Error(), "a.parquet: there are 2 columns, and none is called id in a header") {
		t.Errorf("a file of pairs: %q, %v", got, err)
	}
	if err := ReadIDs(t.Context(), filepath.Join(t.TempDir(), "none.csv"), 1, 0, nil); err == nil {
		t.Error("a missing file has ids")
	}
}

// A file of a fuzzer's ends in an error, or in ids that are the same when it is read again.
func FuzzIDs(f *testing.F) {
	for _, seed := range []string{"1,2\n3,4\n", "id\na b\n", "src,dst\n\"a\"\"\n,\",1\n", "1\n", "# x\n5\t6\n", "\xef\xbb\xbfid,x\n1,2\n", "\"1"} {
		f.Add([]byte(seed), 1)
		f.Add([]byte(seed), 2)
	}
	f.Fuzz(func(t *testing.T, file []byte, columns int) {
		if columns < 1 || columns > 2 {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		first, err := idsIn(ctx, t, "ids.csv", string(file), columns)
		again, errAgain := idsIn(ctx, t, "ids.csv", string(file), columns)
		if ctx.Err() == nil && (fmt.Sprint(first) != fmt.Sprint(again) || (err == nil) != (errAgain == nil)) {
			t.Fatalf("%q and then %q, %v and then %v", first, again, err, errAgain)
		}
		if err == nil && len(first) == 0 {
			t.Fatal("no ids, and no error")
		}
	})
}
