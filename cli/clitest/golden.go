package clitest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Case is one command line with its golden file.
type Case struct {
	File string // name in testdata/golden, without .txt
	Args string
	With func(*Backend) // changes a healthy backend; may be nil
}

// Runner runs a command line in this process.
type Runner func(ctx context.Context, args ...string) (stdout, stderr string, code int)

// Golden compares what commands print, and their exit codes, with golden files, and checks
// that each golden file of the folder belongs to a case. -update writes the files anew.
func Golden(t *testing.T, run Runner, cases []Case) {
	t.Helper()
	names := map[string]bool{}
	for _, c := range cases {
		names[c.File] = true
		t.Run(c.File, func(t *testing.T) {
			b := Healthy()
			b.Lines = []api.LogLine{
				{Time: Then, Level: "INFO", Message: "node is alive", Attrs: map[string]string{"peer": "beta", "id": "bb00000000000002"}},
				{Time: Then, Level: "WARN", Message: "cannot dial\x1b[2J", Attrs: map[string]string{"err": "no route to \"host\"", "peer": ""}},
			}
			if c.With != nil {
				c.With(b)
			}
			addr := Serve(t, b)
			t.Setenv("HOPMESH_ADDR", addr)
			stdout, stderr, code := run(t.Context(), strings.Fields(c.Args)...)
			got := fmt.Sprintf("$ hopmesh %s\n%s", c.Args, stdout)
			if stderr != "" {
				got += "-- stderr\n" + stderr
			}
			got += fmt.Sprintf("-- exit %d\n", code)
			Compare(t, c.File, strings.ReplaceAll(got, addr, "unix:SOCKET"))
			if strings.HasSuffix(c.File, "-json") && c.File != "monitor-json" {
				OneDocument(t, stdout)
			}
		})
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if !names[strings.TrimSuffix(filepath.Base(f), ".txt")] {
			t.Errorf("%s belongs to no test", f)
		}
	}
}

// Compare compares a text with a golden file.
func Compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // files of the repository
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // files of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (go test -update writes it anew)\n%s", got, want)
	}
}

// OneDocument fails a test unless a text is one JSON document.
func OneDocument(t *testing.T, s string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	if err := d.Decode(new(any)); err != nil {
		t.Errorf("no JSON: %v", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("more than one document: %v", err)
	}
}

// FirstWrite returns a writer that calls a function before it passes on each write.
func FirstWrite(w io.Writer, then func()) io.Writer { return firstWrite{w, then} }

type firstWrite struct {
	io.Writer
	then func()
}

func (f firstWrite) Write(p []byte) (int, error) {
	f.then()
	return f.Writer.Write(p)
}

// Full is a writer that always fails, as on a full disk.
type Full struct{}

// Write returns an error.
func (Full) Write([]byte) (int, error) { return 0, errors.New("no space left") }
