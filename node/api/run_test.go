package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestScriptsRun(t *testing.T) {
	for _, network := range networks {
		f := &fake{}
		c := serve(t, network, f)
		var lines []string
		tell := func(e RunEvent) {
			if e.Line != nil {
				lines = append(lines, e.Node+": "+*e.Line)
			}
		}
		r := RunRequest{Name: "train.py", Script: "print(1)\n", Args: []string{"--a", "b c"}, Run: "night"}
		d, err := c.RunScript(t.Context(), r, tell)
		if err != nil || d.Run != "ab12" || len(d.Nodes) != 1 || len(lines) != 1 || lines[0] != "n1: print(1)\n" {
			t.Errorf("%s: %+v, %q, %v", network, d, lines, err)
		}
		f.err = NewError(422, "the script beside n1 ended with exit code 3")
		if _, err := c.RunScript(t.Context(), r, tell); err == nil || err.Error() != f.err.Error() {
			t.Errorf("%s: %v", network, err)
		}
	}
}

// Who may run a script on a node may do all that its user may.
func TestScriptsAreForOwners(t *testing.T) {
	for _, r := range (server{&fake{}}).runRoutes() {
		if r.who != owners {
			t.Errorf("%s is for others", r.pattern)
		}
	}
}

func TestScriptsThatNobodyRuns(t *testing.T) {
	good := RunRequest{Script: "x", Run: "a-1"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(r *RunRequest){
		"the script is empty":               func(r *RunRequest) { r.Script = "" },
		"the script has 262145 bytes":       func(r *RunRequest) { r.Script = strings.Repeat("x", maxScript+1) },
		"is no text in UTF-8":               func(r *RunRequest) { r.Script = "\xff" },
		"arguments take 65538 bytes":        func(r *RunRequest) { r.Args = []string{strings.Repeat("x", maxArgs+1)} },
		"an argument of the script, \"a\\x": func(r *RunRequest) { r.Args = []string{"a\x00"} },
		"beside -1 nodes":                   func(r *RunRequest) { r.Nodes = -1 },
		"\"none\" names no run":             func(r *RunRequest) { r.Run = "none" },
		"\"a/b\" names no run":              func(r *RunRequest) { r.Run = "a/b" },
		"\"a--1\" names no run: it ends":    func(r *RunRequest) { r.Run = "a--1" },
	} {
		r := good
		change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Whoever reads a script's output late still gets all of it.
func TestOutputThatIsReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		s := &http.Server{Handler: Handler(&fake{}, metrics())}
		go func() { _ = s.Serve(l) }()
		conn := l.dial()
		body := `{"script":"` + strings.Repeat("x", 9000) + `"}`
		if _, err := fmt.Fprintf(conn, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		<-time.After(streamTimeout - time.Second)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		lines, last := json.NewDecoder(res.Body), RunEvent{}
		for last.Done == nil {
			if err := lines.Decode(&last); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close()
		close(l)
		_ = s.Close()
	})
}

// spoken says a line a read, unless the request has ended.
type spoken struct {
	ctx   context.Context
	lines []string
}

func (s *spoken) Close() error { return nil }
func (s *spoken) Read(to []byte) (n int, err error) {
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	if len(s.lines) == 0 {
		return 0, io.EOF
	}
	n, s.lines = copy(to, s.lines[0]), s.lines[1:]
	return n, nil
}

// The time that the command takes to print an event does not count as the daemon's silence.
func TestPrintingMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewClient("127.0.0.1:7947")
		if err != nil {
			t.Fatal(err)
		}
		c.http.Transport = answerer(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Request: r, Body: &spoken{r.Context(), []string{
				`{"node":"n1","line":"a"}` + "\n", `{"done":{"run":"k","nodes":["n1"]}}` + "\n",
			}}}
		})
		d, err := c.RunScript(t.Context(), RunRequest{Script: "x"}, func(RunEvent) { <-time.After(10 * silence) })
		if err != nil || d.Run != "k" {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
