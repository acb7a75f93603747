package rules

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exceptionsFile lists what breaks a rule today. Its numbers may only fall.
const exceptionsFile = "testdata/exceptions.txt"

const exceptionsHead = `# What breaks a rule of this package today: rule, where, number, reason, separated by tabs.
# Numbers may only fall. Lower them with:  go test ./scripts/rules -update
# Take in what is new or has grown with:   go test ./scripts/rules -update=add
# and then say why in the last column of each line that has no reason there.
`

// update says what to do with exceptionsFile: nothing, lower its numbers ("true"), or
// also take in what is new and what has grown ("add").
var update string

func init() {
	flag.BoolFunc("update", "lower the numbers in "+exceptionsFile+"; with =add, take in what is new too", func(value string) error {
		if value != "true" && value != "add" {
			return fmt.Errorf("-update or -update=add, not -update=%s", value)
		}
		update = value
		return nil
	})
}

// A finding is something that breaks a rule, and by what number.
type finding struct {
	rule, where string
	number      int
	at          []string // where exactly, if that helps
}

// An exception is a finding that is allowed for now.
type exception struct {
	rule, where string
	number      int
	reason      string
}

func byRule[T any](key func(T) (rule, where string)) func(a, b T) int {
	return func(a, b T) int {
		ruleA, whereA := key(a)
		ruleB, whereB := key(b)
		return cmp.Or(strings.Compare(ruleA, ruleB), strings.Compare(whereA, whereB))
	}
}

func (f finding) key() (rule, where string)   { return f.rule, f.where }
func (e exception) key() (rule, where string) { return e.rule, e.where }

// A rule returns what breaks it, whether that is allowed for now or not.
type rule struct {
	name, says string
	find       func([]file) []finding
}

// rules are those with exceptions.
var rules = []rule{
	{"lines", "a package has at most 4,000 lines without its tests: which two packages is it?", packageLines},
	{"files", "a package has at most 35 files without its tests: which two packages is it?", packageFiles},
	{"length", "a file of more than 500 lines says here why it is one: which two things does it hold?", fileLengths},
	{"prefix", "at most three files of a folder share a prefix: the prefix is a package waiting to be born", prefixes},
	{"fields", "a struct has at most 15 fields: which of them belong together?", structFields},
	{"spread", "the methods of a type stand in at most five files: which types are hidden in it?", methodFiles},
	{"parent", "no struct embeds a pointer to the struct that holds it: pass what it needs", parents},
	{"strategy", "only the package of a strategy and the one list name it: ask the list", strategyNames},
	{"command", "the engine returns setting keys and causes: the CLI turns them into flags and commands", commandStrings},
	{"import", "engine/train runs a Method and knows no strategy: pass it in", strategyImports},
}

// allFindings applies all rules.
func allFindings(all []file) []finding {
	var found []finding
	for _, r := range rules {
		found = append(found, r.find(all)...)
	}
	slices.SortFunc(found, byRule(finding.key))
	return found
}

func parseExceptions(text []byte) ([]exception, error) {
	var table []exception
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			return nil, fmt.Errorf("line %d has %d columns, want rule, where, number and reason", n+1, len(columns))
		}
		number, err := strconv.Atoi(columns[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		e := exception{columns[0], columns[1], number, strings.TrimSpace(columns[3])}
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.name == e.rule }) {
			return nil, fmt.Errorf("line %d: there is no rule %q", n+1, e.rule)
		}
		if slices.ContainsFunc(table, func(o exception) bool { return o.rule == e.rule && o.where == e.where }) {
			return nil, fmt.Errorf("line %d: %s of %s is there twice", n+1, e.rule, e.where)
		}
		table = append(table, e)
	}
	return table, nil
}

func formatExceptions(table []exception) []byte {
	var b bytes.Buffer
	b.WriteString(exceptionsHead)
	for _, e := range table {
		fmt.Fprintf(&b, "%s\t%s\t%d\t%s\n", e.rule, e.where, e.number, e.reason)
	}
	return b.Bytes()
}

// compare returns a sentence for each finding that the table doesn't allow, and for each
// line of the table that allows too much.
func compare(found []finding, table []exception) []string {
	var wrong []string
	for _, f := range found {
		says := rules[slices.IndexFunc(rules, func(r rule) bool { return r.name == f.rule })].says
		n := slices.IndexFunc(table, func(e exception) bool { return e.rule == f.rule && e.where == f.where })
		at := ""
		if len(f.at) > 0 {
			at = "\n\t" + strings.Join(f.at, "\n\t")
		}
		switch {
		case n < 0:
			wrong = append(wrong, fmt.Sprintf("%s: %s %d: %s%s", f.where, f.rule, f.number, says, at))
		case f.number > table[n].number:
			wrong = append(wrong, fmt.Sprintf("%s: %s rose from %d to %d: %s%s", f.where, f.rule, table[n].number, f.number, says, at))
		case f.number*10 < table[n].number*9:
			wrong = append(wrong, fmt.Sprintf("%s: %s fell from %d to %d: lower it in %s (go test ./scripts/rules -update)", f.where, f.rule, table[n].number, f.number, exceptionsFile))
		}
	}
	for _, e := range table {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.rule == e.rule && f.where == e.where }) {
			wrong = append(wrong, fmt.Sprintf("%s: %s %d is no longer needed: take it out of %s (go test ./scripts/rules -update)", e.where, e.rule, e.number, exceptionsFile))
		}
		if e.reason == "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s %d: give the reason in %s", e.where, e.rule, e.number, exceptionsFile))
		}
	}
	return wrong
}

// updated returns the table with its numbers lowered, and without the lines that are no
// longer needed. With add it also takes in findings that are new or have grown, with the
// reasons that they had before they moved.
func updated(found []finding, table []exception, add bool) []exception {
	var next []exception
	for _, f := range found {
		n := slices.IndexFunc(table, func(e exception) bool { return e.rule == f.rule && e.where == f.where })
		switch {
		case n < 0 && add:
			next = append(next, exception{f.rule, f.where, f.number, moved(f, found, table)})
		case n >= 0 && (add || f.number < table[n].number):
			next = append(next, exception{f.rule, f.where, f.number, table[n].reason})
		case n >= 0:
			next = append(next, table[n])
		}
	}
	slices.SortFunc(next, byRule(exception.key))
	return next
}

// moved returns the reason that the table gives for a finding at another place, where there
// is none any more: in a folder within or around this one, or for a thing of this name.
func moved(f finding, found []finding, table []exception) string {
	name := func(where string) string { return where[strings.LastIndexAny(where, "/.")+1:] }
	for _, e := range table {
		if e.rule != f.rule || slices.ContainsFunc(found, func(f finding) bool { return f.rule == e.rule && f.where == e.where }) {
			continue
		}
		if within(f.where, e.where) || within(e.where, f.where) || strings.EqualFold(name(f.where), name(e.where)) {
			return e.reason
		}
	}
	return ""
}

func TestExceptionsOnlyShrink(t *testing.T) {
	text, err := os.ReadFile(exceptionsFile)
	if err != nil && (update != "add" || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	table, err := parseExceptions(text)
	if err != nil {
		t.Fatalf("%s: %v", exceptionsFile, err)
	}
	found := allFindings(files(t))
	if update != "" {
		table = updated(found, table, update == "add")
		if err := os.MkdirAll(filepath.Dir(exceptionsFile), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(exceptionsFile, formatExceptions(table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, wrong := range compare(found, table) {
		t.Error(wrong)
	}
}

func TestExceptionsAreCompared(t *testing.T) {
	found := []finding{
		{"fields", "a.grown", 21, nil}, {"fields", "a.new", 16, []string{"a.go:1:2"}}, {"fields", "a.same", 20, nil},
		{"lines", "a", 4600, nil}, {"lines", "b", 4400, nil},
	}
	table := []exception{
		{"fields", "a.gone", 16, "why"}, {"fields", "a.grown", 20, "why"}, {"fields", "a.same", 20, ""},
		{"lines", "a", 5000, "why"}, {"lines", "b", 5000, "why"},
	}
	want := []string{
		"a.grown: fields rose from 20 to 21: ",
		"a.new: fields 16: a struct has at most 15 fields: which of them belong together?\n\ta.go:1:2",
		"b: lines fell from 5000 to 4400: lower it",
		"a.gone: fields 16 is no longer needed: ",
		"a.same: fields 20: give the reason",
	}
	got := compare(found, table)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	for add, want := range map[bool]string{
		false: "fields\ta.grown\t20\twhy\nfields\ta.same\t20\t\nlines\ta\t4600\twhy\nlines\tb\t4400\twhy\n",
		true:  "fields\ta.grown\t21\twhy\nfields\ta.new\t16\t\nfields\ta.same\t20\t\nlines\ta\t4600\twhy\nlines\tb\t4400\twhy\n",
	} {
		text := formatExceptions(updated(found, table, add))
		if string(text) != exceptionsHead+want {
			t.Errorf("updated with add=%t:\n%s\nwant:\n%s", add, text, want)
		}
		if again, err := parseExceptions(text); err != nil || !slices.Equal(again, updated(found, table, add)) {
			t.Errorf("read back: %v, %v", again, err)
		}
	}
	found = []finding{{"fields", "b.Moved", 20, nil}, {"fields", "c.kept", 20, nil}, {"lines", "a/part", 4100, nil}}
	table = []exception{{"fields", "a.moved", 20, "why moved"}, {"fields", "a.kept", 20, "why kept"}, {"lines", "a", 5000, "why a"}}
	if got, want := string(formatExceptions(updated(found, table, true))), "fields\tb.Moved\t20\twhy moved\nfields\tc.kept\t20\twhy kept\nlines\ta/part\t4100\twhy a\n"; got != exceptionsHead+want {
		t.Errorf("after a move:\n%s\nwant:\n%s", got, want)
	}
	for _, text := range []string{"lines\ta\t1", "lines\ta\tmany\twhy", "limes\ta\t1\twhy", "lines\ta\t1\twhy\nlines\ta\t2\twhy"} {
		if table, err := parseExceptions([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, table)
		}
	}
}

// A plant is a small source that breaks a rule, or just doesn't.
type plant struct {
	files map[string]string // source by path
	want  string            // "where number" of each finding, separated by commas
}

// planted checks that a rule finds what each plant breaks.
func planted(t *testing.T, find func([]file) []finding, plants []plant) {
	t.Helper()
	for _, p := range plants {
		var all []file
		for path, src := range p.files {
			f, err := parse(path, []byte(src))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		found := find(all)
		slices.SortFunc(found, byRule(finding.key))
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprintf("%s %d", f.where, f.number))
		}
		if strings.Join(got, ", ") != p.want {
			t.Errorf("in %v found %q, want %q", p.files, got, p.want)
		}
	}
}
