package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const epochs = 100

// must is the list with an entry, which it takes.
func must(t *testing.T, l List, e Entry) List {
	t.Helper()
	before := fmt.Sprint(l)
	with, err := l.With(e, epochs)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(l) != before {
		t.Errorf("%s became %v", before, l)
	}
	if err := with.Check(epochs); err != nil {
		t.Error(err)
	}
	return with
}

// say lists the entries as from which epoch each is, and its part.
func say(l List) string {
	var all []string
	for _, e := range l {
		all = append(all, fmt.Sprintf("%d:%s/%s", e.From, e.Work, e.Part))
	}
	return strings.Join(all, " ")
}

func entry(from int, generation uint64, work, part string) Entry {
	return Entry{From: from, Generation: generation, Work: work, Strategy: "leap", Part: []byte(part), Rate: 0.1}
}

func TestEntriesReplaceWhatBeginsLater(t *testing.T) {
	l := must(t, nil, entry(1, 3, "ab", "4"))
	l = must(t, l, entry(9, 3, "ab", "3"))
	l = must(t, l, entry(12, 3, "ab", "2"))
	if got := say(l); got != "1:ab/4 9:ab/3 12:ab/2" {
		t.Error(got)
	}
	for name, c := range map[string]struct {
		e    Entry
		want string
	}{
		"later ones go":               {entry(10, 5, "a", "1"), "1:ab/4 9:ab/3 10:a/1"},
		"also of the same epoch":      {entry(9, 5, "a", "1"), "1:ab/4 9:a/1"},
		"an equal entry adds nothing": {entry(10, 5, "ab", "3"), "1:ab/4 9:ab/3"},
		"a repeated proposal":         {entry(9, 3, "ab", "3"), "1:ab/4 9:ab/3 12:ab/2"},
		"other nodes need their own":  {entry(13, 5, "a", "2"), "1:ab/4 9:ab/3 12:ab/2 13:a/2"},
	} {
		if got := say(must(t, l, c.e)); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	slower := entry(13, 3, "ab", "2")
	if slower.Rate = 0.01; len(must(t, l, slower)) != 4 {
		t.Error("another learning rate is no change")
	}
	if _, err := l.With(entry(9, 3, "ab", "7"), epochs); !errors.Is(err, ErrDecided) {
		t.Errorf("what some nodes may have followed is replaced: %v", err)
	}
}

func TestAt(t *testing.T) {
	l := must(t, must(t, must(t, nil, entry(1, 3, "ab", "4")), entry(5, 4, "a", "1")), entry(9, 6, "ab", "2"))
	for name, c := range map[string]struct {
		epoch int
		work  string
		rate  float64
		want  string // "": no entry
	}{
		"the first":                    {1, "ab", 0.1, "4"},
		"until the next":               {4, "ab", 0.1, "4"},
		"repeated as others go on":     {5, "ab", 0.1, "2"},
		"until then":                   {8, "a", 0.1, "1"},
		"the last holds":               {99, "ab", 0.1, "2"},
		"none of these nodes any more": {9, "a", 0.1, ""},
		"none of others":               {3, "abc", 0.1, ""},
		"another learning rate":        {3, "ab", 0.2, ""},
	} {
		if e, ok := l.At(c.epoch, c.work, c.rate); string(e.Part) != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v, not %q", name, e.Part, ok, c.want)
		}
	}
}

func TestBounds(t *testing.T) {
	var l List
	for i := range 2 * MaxEntries {
		l = must(t, l, entry(1+i, 1, "ab", fmt.Sprint(i)))
	}
	if len(l) != MaxEntries || l[len(l)-1].From != 2*MaxEntries {
		t.Errorf("%d entries are kept, the last from epoch %d on", len(l), l[len(l)-1].From)
	}
	for name, change := range map[string]func(e *Entry){
		"before the first epoch": func(e *Entry) { e.From = 0 },
		"after the last":         func(e *Entry) { e.From = epochs + 1 },
		"no strategy":            func(e *Entry) { e.Strategy = "" },
		"no assignment":          func(e *Entry) { e.Work = "" },
		"a long digest":          func(e *Entry) { e.Work = strings.Repeat("w", MaxWork+1) },
		"a large part":           func(e *Entry) { e.Part = make([]byte, MaxPart+1) },
		"a negative rate":        func(e *Entry) { e.Rate = -1 },
	} {
		e := entry(70, 1, "ab", "x")
		change(&e)
		if _, err := l.With(e, epochs); err == nil {
			t.Errorf("%s is taken", name)
		}
		if err := (List{e}).Check(epochs); err == nil {
			t.Errorf("%s is read", name)
		}
	}
	for name, bad := range map[string]List{
		"too many":  append(List{entry(1, 1, "ab", "")}, l...),
		"disorder":  {entry(2, 1, "ab", "1"), entry(1, 1, "ab", "2")},
		"one epoch": {entry(2, 1, "ab", "1"), entry(2, 1, "ab", "2")},
	} {
		if bad.Check(epochs) == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}
