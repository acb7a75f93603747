package result

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func page() *Page {
	p := &Page{Title: "Things", Command: "hopmesh bench things", Version: "v1"}
	p.Note("all is slow")
	t := Table{Head: []string{"Thing", "Size", ""}}
	t.Add("µs | s", 3, "holds")
	t.Add("a longer thing", "1.0x", "")
	p.Table(t)
	p.Table(Table{Title: "None", Head: []string{"none"}})
	p.Picture(filepath.Join("docs", "pictures", "things.svg"), "the things")
	p.Text("That is all.")
	return p
}

func TestPageForTerminals(t *testing.T) {
	var out bytes.Buffer
	if err := page().Print(&out); err != nil {
		t.Fatal(err)
	}
	want := "Note: all is slow.\n\nTHING           SIZE\nµs | s          3     holds\na longer thing  1.0x\n\nThat is all.\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPageInMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := page().Markdown(&out, filepath.Join("docs", "results")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Things\n\n| Written by | `hopmesh bench things`", "\n| version ", "| v1 ", "\n| date ", "\n| processor ", runtime.Version(),
		"\nNote: all is slow.\n\n| Thing          | Size |       |\n|---|---|---|\n| µs \\| s        | 3    | holds |\n| a longer thing | 1.0x |       |\n",
		"\n![the things](../pictures/things.svg)\n", "\nThat is all.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "None") {
		t.Errorf("a table without rows is in\n%s", out.String())
	}
}

func TestFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "things.md")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Writable(file); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != "before" {
		t.Errorf("asking leaves %q, %v", now, err)
	}
	if err := page().Write(file); err != nil {
		t.Error(err)
	}
	if now, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(now), "# Things\n") {
		t.Errorf("written is %q, %v", now, err)
	}
	for _, err := range []error{Writable(filepath.Join(file, "none")), page().Write(filepath.Join(file, "none"))} {
		if err == nil {
			t.Error("a file below a file can be written")
		}
	}
	for _, err := range []error{Writable(""), page().Write("")} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestMachine(t *testing.T) {
	m := Machine{Processor: "a processor", Cores: 2, System: "a system", Platform: "linux/amd64", Go: "go1"}
	if got := m.String(); got != "2 cores, a processor, linux/amd64, go1" {
		t.Error(got)
	}
	if m := ThisMachine(); m.Cores < 1 || m.Processor == "" || m.System == "" {
		t.Errorf("%+v", m)
	}
	if commit() == "" {
		t.Error("the program's version is empty")
	}
}
