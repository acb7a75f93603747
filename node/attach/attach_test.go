package attach_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/desk/desktest"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/attach"
)

// backend is a node with one desk.
type backend struct {
	api.Backend
	desk *desk.Desk
}

func (b backend) Attach(_ context.Context, id string) (api.Attachment, error) {
	if id != "j1" {
		return nil, api.NotFound("there is no job %s", id)
	}
	t, err := attach.New(b.desk, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, api.Conflict("%v", err)
	}
	return t, nil
}

// served returns the socket of a node.
func served(t *testing.T, d *desk.Desk) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: api.Handler(backend{desk: d}, http.NotFoundHandler())}
	go func() { _ = s.Serve(l) }() // it ends with the test
	t.Cleanup(func() { _ = s.Close() })
	return socket
}

func job() recipe.Recipe {
	r := recipe.DefaultRecipe(nn.Program)
	r.Epochs, r.Batch, r.Seed, r.Fanouts = 3, 60, 7, []int{3, 3}
	r.Sharing = strategy.Given("program")
	return r
}

// A program over the socket learns what one in the process does, over two runs.
func TestOverTheSocket(t *testing.T) {
	shards := traintest.Communities(t, 600)
	run := func(ctx context.Context, d *desk.Desk, dir string) error {
		_, err := train.Run(ctx, job(), shards, train.Options{Threads: 1, Dataset: "d", Strategies: strategies.All, Dir: dir, Resume: true, Desk: d})
		return err
	}
	d := desk.New()
	inside, err := d.Attach()
	if err != nil {
		t.Fatal(err)
	}
	want := &desktest.Program{Line: desktest.Local(inside), Rate: 1e-3, Every: 2}
	ended := make(chan error, 1)
	go func() { ended <- want.Run() }()
	if err := run(t.Context(), d, ""); err != nil {
		t.Fatal(err)
	}
	d.End(&desk.Ending{Done: true})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	d = desk.New()
	socket := served(t, d)
	w, err := desktest.Dial(socket, "j1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := desktest.Dial(socket, "j1"); err == nil || !strings.Contains(err.Error(), "another program is attached") {
		t.Error(err)
	}
	if _, err := desktest.Dial(socket, "j2"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	got := &desktest.Program{Line: w, Rate: 1e-3, Every: 2}
	got.Before = func(at desktest.Place) error {
		if at.Epoch == 2 && at.Step == 1 {
			stop(errors.New("another generation begins"))
		}
		return nil
	}
	go func() { ended <- got.Run() }()
	dir := t.TempDir()
	if err := run(ctx, d, dir); err == nil {
		t.Fatal("nothing has happened")
	}
	if err := run(t.Context(), d, dir); err != nil {
		t.Fatal(err)
	}
	d.End(&desk.Ending{Done: true})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if traintest.Distance(got.Weights, want.Weights) != 0 || got.Restarts != 1 {
		t.Errorf("after %d interruptions the weights differ", got.Restarts)
	}
	if len(w.Drops) == 0 {
		t.Error("no memory was dropped")
	}
}

// What is no question gets a sentence, and the end of the connection.
func TestGarbage(t *testing.T) {
	d := desk.New()
	socket := served(t, d)
	for want, send := range map[string]func(w *desktest.Wire) error{
		"must be one JSON object": func(w *desktest.Wire) error { return w.Send([]byte("nonsense")) },
		"ask one of hello":        func(w *desktest.Wire) error { return w.Send([]byte(`{"type":"dance"}`)) },
		"one JSON object with":    func(w *desktest.Wire) error { _, err := w.Conn.Write([]byte{255, 255, 255, 255}); return err },
		"must be hello":           func(w *desktest.Wire) error { return w.Send([]byte(`{"type":"next"}`)) },
	} {
		w, err := desktest.Dial(socket, "j1")
		for err != nil && strings.Contains(err.Error(), "another program") { // the one before is about to leave
			w, err = desktest.Dial(socket, "j1")
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := send(w); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(w.Conn)
		if err != nil || !strings.Contains(string(all), want) || !strings.Contains(string(all), `"type":"failed"`) {
			t.Errorf("%s: %q, %v", want, all, err)
		}
		_ = w.Conn.Close() // the node has, too
	}
}

func TestUpgrade(t *testing.T) {
	d := desk.New()
	socket := served(t, d)
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	r, err := client.Get("http://hopmesh/v1/jobs/j1/attach")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }() // it was read
	if text, err := io.ReadAll(r.Body); r.StatusCode != http.StatusUpgradeRequired || !strings.Contains(string(text), "Upgrade: hopmesh-program/1") {
		t.Errorf("%s: %s, %v", r.Status, text, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: api.Handler(backend{desk: d}, http.NotFoundHandler())}
	go func() { _ = s.Serve(l) }() // it ends with the test
	defer func() { _ = s.Close() }()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/v1/jobs/j1/attach", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Connection", "Upgrade")
	q.Header.Set("Upgrade", api.ProgramProtocol)
	over, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = over.Body.Close() }() // it was read
	if text, err := io.ReadAll(over.Body); over.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "over the unix socket") {
		t.Errorf("%s: %s, %v", over.Status, text, err)
	}
}
