package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// texts returns what a picture says, and fails the test unless it is XML.
func texts(t *testing.T, picture []byte) (all []string) {
	t.Helper()
	for in := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
}

func bars() *Chart {
	return &Chart{
		Title: "a < b", Rows: []string{"first", "second"}, Series: []string{"before", "after"},
		Panels: []Panel{
			{Title: "seconds", Marks: [][]Mark{{{Value: 2, Label: "2.0 s"}, {Value: 1, Label: "1.0 s"}}, {{Value: 1, Label: "1.0 s, less"}, {Missing: true, Label: "none"}}}},
			{Title: "bytes", Marks: [][]Mark{{{}, {}}}},
		},
	}
}

func TestBars(t *testing.T) {
	picture, err := bars().Encode("svg")
	if err != nil {
		t.Fatal(err)
	}
	said := texts(t, picture)
	for _, want := range []string{"a < b", "first", "second", "before", "after", "seconds", "bytes", "2.0 s", "1.0 s, less"} {
		if !slices.Contains(said, want) {
			t.Errorf("%q is not in the picture, which says %q", want, said)
		}
	}
	if slices.Contains(said, "none") {
		t.Error("what is missing is drawn")
	}
}

func TestDots(t *testing.T) {
	c := &Chart{Title: "means", Dots: true, Rows: []string{"one", "two", "three"}, Panels: []Panel{
		{Title: "a graph", Marks: [][]Mark{{{Value: 80, Deviation: 1, Label: "80.0"}, {Missing: true}, {Value: 82, Label: "82.0"}}}},
		{Title: "not run", Marks: [][]Mark{{{Missing: true}, {Missing: true}, {Missing: true}}}},
	}}
	picture, err := c.Encode("svg")
	if err != nil {
		t.Fatal(err)
	}
	said := texts(t, picture)
	for _, want := range []string{"means", "one", "two", "three", "a graph", "not run", "80.0", "82.0"} {
		if !slices.Contains(said, want) {
			t.Errorf("%q is not in the picture, which says %q", want, said)
		}
	}
}

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "bars.png")
	if err := bars().Draw(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
	if err := bars().Draw(""); err != nil {
		t.Error(err)
	}
	for _, file := range []string{filepath.Join(folder, "bars.gif"), filepath.Join(folder, "none", "bars.svg")} {
		if err := bars().Draw(file); err == nil {
			t.Errorf("%s is drawn", file)
		}
	}
	if _, err := (&Chart{}).Encode("svg"); err == nil {
		t.Error("nothing is drawn")
	}
}
