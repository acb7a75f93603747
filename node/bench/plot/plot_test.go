package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pictures in testdata anew")

// texts returns what a picture says, and fails the test unless it is XML of SVG alone.
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
		switch token := token.(type) {
		case xml.CharData:
			all = append(all, string(token))
		case xml.StartElement:
			known := []string{"svg", "title", "g", "rect", "line", "circle", "text"}
			if token.Name.Space != "http://www.w3.org/2000/svg" || !slices.Contains(known, token.Name.Local) {
				t.Errorf("the picture has an element %v", token.Name)
			}
		}
	}
}

func encoded(t *testing.T, c *Chart) []byte {
	t.Helper()
	picture, err := c.Encode("svg")
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// says fails the test unless a chart's picture has some texts.
func says(t *testing.T, c *Chart, wants ...string) (all []string) {
	t.Helper()
	all = texts(t, encoded(t, c))
	for _, want := range wants {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not in the picture, which says %q", want, all)
		}
	}
	return all
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

func dots() *Chart {
	return &Chart{Title: "means", Dots: true, Rows: []string{"one", "two", "three"}, Panels: []Panel{
		{Title: "a graph", Marks: [][]Mark{{{Value: 80, Deviation: 1, Label: "80.0"}, {Missing: true}, {Value: 82, Label: "82.0"}}}},
		{Title: "not run", Marks: [][]Mark{{{Missing: true}, {Missing: true}, {Missing: true}}}},
	}}
}

// many has more series than there are colours, a row that is not complete, values on both
// sides of 0, and a legend of more than one line.
func many() *Chart {
	c := &Chart{Title: "many", Rows: []string{"this", "that"}, Panels: []Panel{{Title: "a number"}}}
	for i := range len(colours) + 1 {
		c.Series = append(c.Series, fmt.Sprintf("strategy number %d", i+1))
		c.Panels[0].Marks = append(c.Panels[0].Marks, []Mark{{Value: float64(i - 2), Label: fmt.Sprint(i - 2)}})
	}
	return c
}

// hostile has texts that are not XML.
func hostile() *Chart {
	return &Chart{
		Title: `</title><script>alert("1")</script>`, Rows: []string{"]]>", "<!-- & '\"", "a\x00b\x1b[31m\xff", "图 グラフ 🚀"},
		Series: []string{"&amp;", "<svg onload='x'>"},
		Panels: []Panel{{Title: `"/><image href="http://x"/>`, Marks: [][]Mark{{{Value: 1, Label: "<b>\n1</b>"}, {Value: 2, Label: "&#0;"}}, {{Value: 3, Label: "%s%n"}}}}},
	}
}

func single() *Chart {
	return &Chart{Title: "single", Rows: []string{"one"}, Dots: true, Panels: []Panel{
		{Title: "eighty", Marks: [][]Mark{{{Value: 80, Label: "80"}}}}, {Title: "nothing", Marks: [][]Mark{{{Value: 0, Label: "0"}}}},
	}}
}

func empty() *Chart {
	return &Chart{Title: "empty", Rows: []string{"one"}, Panels: []Panel{{Title: "no series"}, {Title: "no marks", Marks: [][]Mark{{}}}}}
}

func TestPicturesAreThoseInTestdata(t *testing.T) {
	for name, c := range map[string]*Chart{"bars": bars(), "dots": dots(), "many": many(), "hostile": hostile(), "single": single(), "empty": empty()} {
		t.Run(name, func(t *testing.T) {
			got, file := encoded(t, c), filepath.Join("testdata", name+".svg")
			texts(t, got)
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("it is not %s: run go test ./node/bench/plot -update, and look at the difference:\n%s", file, got)
			}
		})
	}
}

func TestBars(t *testing.T) {
	said := says(t, bars(), "a < b", "first", "second", "before", "after", "seconds", "bytes", "2.0 s", "1.0 s, less", "0.5", "2.0")
	if slices.Contains(said, "none") {
		t.Error("what is missing is drawn")
	}
	one := bars()
	one.Series = one.Series[:1]
	one.Panels[0].Marks = one.Panels[0].Marks[:1]
	if slices.Contains(says(t, one, "first"), "before") {
		t.Error("a single series has a legend")
	}
}

func TestDots(t *testing.T) {
	says(t, dots(), "means", "one", "two", "three", "a graph", "not run", "80.0", "82.0")
	if n := bytes.Count(encoded(t, dots()), []byte("<circle")); n != 2 {
		t.Errorf("%d dots are drawn, want 2", n)
	}
}

// Texts come out as they went in, but for what XML can't have.
func TestHostileTextsAreEscaped(t *testing.T) {
	c := hostile()
	wants := slices.Concat([]string{c.Title, c.Panels[0].Title, "<b>\n1</b>", "&#0;", "%s%n", "a\ufffdb\ufffd[31m\ufffd"}, c.Series, c.Rows[:2], c.Rows[3:])
	says(t, c, wants...)
}

func TestEmptyDataHasNoAxis(t *testing.T) {
	says(t, empty(), "empty", "one", "no series", "no marks")
	if picture := encoded(t, empty()); bytes.Contains(picture, []byte("<line")) {
		t.Errorf("a panel without marks has an axis:\n%s", picture)
	}
}

func TestSingleValues(t *testing.T) {
	says(t, single(), "80", "75", "85", "0.0", "-0.5", "0.5")
	says(t, &Chart{Title: "bar", Rows: []string{"one"}, Panels: []Panel{{Marks: [][]Mark{{{Value: 7}}}}, {Marks: [][]Mark{{{Value: 0}}}}}}, "2", "4", "6", "0.0", "1.0")
}

func TestNumbersThatCanNotBeDrawnAreRefused(t *testing.T) {
	for name, m := range map[string]Mark{
		"NaN": {Value: math.NaN()}, "Inf": {Value: math.Inf(1)}, "-Inf": {Value: math.Inf(-1)}, "huge": {Value: 1.1e300},
		"deviation NaN": {Deviation: math.NaN()}, "deviation Inf": {Deviation: math.Inf(1)}, "deviation below 0": {Deviation: -1},
	} {
		for _, dots := range []bool{false, true} {
			c := &Chart{Title: "t", Rows: []string{"good", "bad"}, Dots: dots, Panels: []Panel{{Title: "p", Marks: [][]Mark{{{Value: 1}, m}}}}}
			if _, err := c.Encode("svg"); err == nil || !strings.Contains(err.Error(), `"bad"`) {
				t.Errorf("%s: %v", name, err)
			}
			c.Panels[0].Marks[0][1].Missing = true
			says(t, c, "good")
		}
	}
	for name, c := range map[string]*Chart{
		"no rows":         {Panels: []Panel{{}}},
		"no panels":       {Rows: []string{"one"}},
		"too many marks":  {Rows: []string{"one"}, Panels: []Panel{{Marks: [][]Mark{{{}, {}}}}}},
		"too many series": {Rows: []string{"one"}, Series: []string{"a", "b"}, Panels: []Panel{{Marks: [][]Mark{{}, {}, {}}}}},
	} {
		if _, err := c.Encode("svg"); err == nil {
			t.Errorf("%s: it is drawn", name)
		}
	}
}

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "bars.svg")
	if err := bars().Draw(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(picture, encoded(t, bars())) {
		t.Error("the file is not the picture")
	}
	if err := bars().Draw(""); err != nil {
		t.Error(err)
	}
	for _, file := range []string{filepath.Join(folder, "bars.png"), filepath.Join(folder, "bars"), filepath.Join(folder, "none", "bars.svg")} {
		if err := bars().Draw(file); err == nil {
			t.Errorf("%s is drawn", file)
		}
	}
	if err := Check("bars.png"); err == nil || !strings.HasSuffix(err.Error(), "let its name end in .svg") {
		t.Errorf("a PNG: %v", err)
	}
	if _, err := bars().Encode("png"); err == nil {
		t.Error("a PNG is encoded")
	}
}
