package tabular

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func itoa(i int) string { return strconv.Itoa(i) }

func TestIDsAreNumberedAsDocumented(t *testing.T) {
	for name, c := range map[string]struct{ edges, names, note string }{
		"0 to n-1":              {"2,1\n0,2\n", "0 1 2", "The ids are the integers 0 to 2 and stay as they are."},
		"a gap":                 {"3,1\n0,3\n", "0 1 3", "The ids are integers from 0 to 3 and are numbered in ascending order."},
		"from 1":                {"2,1\n", "1 2", "integers from 1 to 2"},
		"negative":              {"-5,3\n3,-1\n", "-5 -1 3", "integers from -5 to 3"},
		"far apart":             {"9000000000000,3\n3,70000000\n", "3 70000000 9000000000000", "ascending"},
		"the ends of int64":     {"9223372036854775807,-9223372036854775808\n0,1\n", "-9223372036854775808 0 1 9223372036854775807", "ascending"},
		"beyond int64":          {"9223372036854775808,1\n", "9223372036854775808 1", "taken as text"},
		"text":                  {"b,a\na,c\n", "b a c", "Not all ids are integers: they are taken as text and numbered in the order in which they first appear."},
		"mixed":                 {"2,1\n1,x\n", "2 1 x", "taken as text"},
		"zeros before":          {"2,007\n7,2\n", "2 007 7", "taken as text"},
		"signs":                 {"+1,-0\n", "+1 -0", "taken as text"},
		"quoted integers":       {"\"1\",\"0\"\n", "0 1", "stay as they are"},
		"unicode":               {"é,日本\n", "é 日本", "taken as text"},
		"zeros after many rows": {strings.Repeat("2,1\n", 100) + "1,007\n", "2 1 007", "taken as text"},
		"sign after many rows":  {strings.Repeat("2,1\n", 100) + "-0,1\n", "2 1 -0", "taken as text"},
		"large after many rows": {strings.Repeat("2,1\n", 100) + "9223372036854775807,1\n1,-999999999999999999\n", "-999999999999999999 1 2 9223372036854775807", "ascending"},
		"text after many rows":  {strings.Repeat("2,1\n", 100_000) + "1,x\n", "2 1 x", "taken as text"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, folder(t, map[string]string{"edges.csv": c.edges}))
			if got := names(s); got != c.names {
				t.Errorf("ids %q, want %q", got, c.names)
			}
			if notes := strings.Join(s.Notes(), " "); !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if ids := s.IDs(); c.names == "0 1 2" && (ids.Ints != nil || ids.Strings != nil) {
				t.Error("ids that are 0 to n-1 are listed")
			}
			var want []string
			for row := range strings.Lines(c.edges) {
				want = append(want, strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(row), ",", ">"), `"`, ""))
			}
			if got := edgesOf(t, s); !slices.Equal(got, want) {
				t.Errorf("edges %.200q, want %.200q", got, want)
			}
		})
	}
}

func TestTextOfAnyNumber(t *testing.T) {
	m := newIDMap(&source.Memory{Limit: 64 << 20}, true)
	var c idColumn
	for i := range 50_000 {
		c.addText([]byte(fmt.Sprint("v", i%20_000)))
	}
	if err := m.collect(&c); err != nil {
		t.Fatal(err)
	}
	if err := m.finish(); err != nil || m.len() != 20_000 {
		t.Fatal(m.len(), err)
	}
	for i, v := range m.number(&c, nil) {
		if int(v) != i%20_000 {
			t.Fatalf("%d became %d", i, v)
		}
	}
	if got := m.number(&idColumn{bytes: []byte("w"), ends: []int{1}}, nil)[0]; got != unknownID {
		t.Errorf("an unknown id became %d", got)
	}
}
