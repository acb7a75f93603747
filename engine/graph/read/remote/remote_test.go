package remote_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/graph/read/remote"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// direct asks a server in this process.
func direct(s *remote.Server) remote.Ask {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		return s.Answer(ctx, "peer", question), nil
	}
}

// edgeFile writes an edge list of so many rows.
func edgeFile(t testing.TB, rows int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edges.csv")
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "%d,%d\n", i, (i+1)%rows)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRowsArriveInOrder(t *testing.T) {
	s := read.NewServer(0)
	defer s.Close()
	const rows = 200_000 // several batches
	path := edgeFile(t, rows)
	for _, asks := range []int{1, 2} { // an answer that was lost is asked for again
		ask := func(ctx context.Context, question []byte) (b []byte, err error) {
			for range asks {
				b = s.Answer(ctx, "peer", question)
			}
			return b, nil
		}
		src, err := read.OpenParts(t.Context(), []read.Part{{Label: "n1:" + path, Node: "n1", Path: path, Ask: ask}}, read.Options{})
		if err != nil {
			t.Fatal(err)
		}
		next := uint32(0)
		err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
			for i, v := range b.Src {
				if v != next || b.Dst[i] != (v+1)%rows {
					return fmt.Errorf("edge %d is %d>%d", next, v, b.Dst[i])
				}
				next++
			}
			return nil
		})
		if err != nil || next != rows {
			t.Errorf("%d of %d edges: %v", next, rows, err)
		}
	}
}

// The error of who takes the rows is returned unchanged, and the stream ends.
func TestStoppedReading(t *testing.T) {
	s := read.NewServer(0)
	path, full := edgeFile(t, 200_000), errors.New("the disk is full")
	got := direct(s).Scan(t.Context(), tabular.Query{Path: path, Format: "csv"}, func([]byte) error { return full })
	if !errors.Is(got, full) {
		t.Error(got)
	}
	s.Close() // waits for the stream
	if err := direct(s).Scan(t.Context(), tabular.Query{Path: path, Format: "csv"}, func([]byte) error { return nil }); err == nil {
		t.Error("a server that is closed reads")
	}
}

// A stream that nobody asks ends by itself, and only its own peer may ask it.
func TestForgottenStreams(t *testing.T) {
	path := edgeFile(t, 1000)
	synctest.Test(t, func(t *testing.T) {
		s := read.NewServer(0)
		begin := fmt.Sprintf(`{"Do":"scan","Query":{"Path":%q,"Format":"csv"}}`, path)
		var last string
		id := string(s.Answer(t.Context(), "a", []byte(begin))[1:])
		for range 64 {
			last = string(s.Answer(t.Context(), "a", []byte(begin)))
		}
		if !strings.Contains(last, "64 tables") {
			t.Errorf("the 65th stream: %q", last)
		}
		next := []byte(`{"Do":"next","Stream":` + id + `,"Number":1}`)
		if got := string(s.Answer(t.Context(), "b", next)); !strings.Contains(got, "given up") {
			t.Errorf("a stranger gets %.20q", got)
		}
		if got := s.Answer(t.Context(), "a", next); len(got) < 1000 {
			t.Errorf("the peer gets %q", got)
		}
		time.Sleep(10 * time.Minute) // virtual
		synctest.Wait()
		if got := string(s.Answer(t.Context(), "a", next)); !strings.Contains(got, "given up") {
			t.Errorf("after ten minutes: %.20q", got)
		}
		if got := string(s.Answer(t.Context(), "a", []byte(begin))); strings.Contains(got, "tables") {
			t.Errorf("after ten minutes no stream can begin: %q", got)
		}
		s.Close()
	})
}

// What another node says of its source is checked before it is shown, or kept with the
// dataset.
func TestWhatReadersSay(t *testing.T) {
	opened := func(look string) (graph.Source, error) {
		ask := func(_ context.Context, question []byte) ([]byte, error) {
			switch {
			case strings.Contains(string(question), `"Do":"look"`):
				return []byte(look), nil
			case strings.Contains(string(question), `"Do":"scan"`):
				return []byte("\x001"), nil
			case strings.Contains(string(question), `"Number":1`):
				return []byte("\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00"), nil
			}
			return []byte{1}, nil
		}
		return read.OpenParts(t.Context(), []read.Part{{Label: "n1:/x", Node: "n1", Path: "/x", Ask: ask}}, read.Options{Memory: 64 << 20})
	}
	edges := `{"Kind":0,"Name":"edges.csv","Unit":"line","Notes":["a\u001b[2Jb"]}`
	for name, look := range map[string]string{
		"a format that is none": `{"Format":"x","Tables":[` + edges + `]}`,
		"2 MiB":                 `{"Format":"csv","Tables":[` + edges + `]` + strings.Repeat(" ", 2<<20) + `}`,
	} {
		if _, err := opened("\x00" + look); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	src, err := opened("\x00" + `{"Format":"csv","Tables":[` + edges + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(src.Notes(), "\n"); !strings.Contains(notes, "a?[2Jb") {
		t.Errorf("it notes %q", notes)
	}
	if _, err := opened("\x03no\x1b[2J such file"); err == nil || !strings.Contains(err.Error(), "no?[2J such file") {
		t.Errorf("%q", err)
	}
}

// FuzzAnswers gives a builder answers that no reader sends.
func FuzzAnswers(f *testing.F) {
	look := "\x00" + `{"Format":"csv","Tables":[{"Kind":0,"Name":"edges.csv","Unit":"line"}]}`
	f.Add([]byte(look), []byte("\x001"), []byte("\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00"))
	f.Add([]byte(look), []byte("\x001"), []byte("\x01"))
	f.Fuzz(func(t *testing.T, look, scan, batch []byte) {
		asked := 0
		ask := func(_ context.Context, question []byte) ([]byte, error) {
			switch asked++; {
			case strings.Contains(string(question), `"Do":"look"`):
				return look, nil
			case strings.Contains(string(question), `"Do":"scan"`):
				return scan, nil
			case asked > 5:
				return []byte{1}, nil
			}
			return batch, nil
		}
		src, err := read.OpenParts(t.Context(), []read.Part{{Label: "n1:/x", Node: "n1", Path: "/x", Ask: ask}}, read.Options{Memory: 64 << 20})
		if err != nil {
			return
		}
		_ = src.Edges(t.Context(), func(graph.EdgeBatch) error { return nil })
		_ = src.Features(t.Context(), func(graph.FeatureBatch) error { return nil })
	})
}

// FuzzQuestions asks a reader what no builder asks.
func FuzzQuestions(f *testing.F) {
	for _, q := range []string{`{"Do":"look"}`, `{"Do":"scan","Query":{"Kind":9}}`, `{"Do":"next","Stream":1,"Number":7}`, `{"Do":"stop","Stream":1}`, `x`} {
		f.Add([]byte(q))
	}
	s := read.NewServer(0)
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, q []byte) {
		if len(s.Answer(t.Context(), "peer", q)) == 0 {
			t.Error("no answer")
		}
	})
}

// Few sources are looked at at once, since each may take much memory.
func TestLooksTakeTurns(t *testing.T) {
	path := edgeFile(t, 10)
	synctest.Test(t, func(t *testing.T) {
		looks, goOn := 0, make(chan struct{})
		s := remote.NewServer(0, func(_, format string) (string, error) {
			looks++
			<-goOn
			return format, nil
		})
		defer s.Close()
		answers := make(chan error)
		look := func(ctx context.Context) {
			go func() {
				_, err := direct(s).Look(ctx, path, "csv", nil)
				answers <- err
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		look(t.Context())
		look(t.Context())
		look(ctx)
		if looks != 2 {
			t.Errorf("%d looks at once", looks)
		}
		cancel()
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("who waits and gives up: %v", err)
		}
		look(t.Context())
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "for 10s the node has been looking") {
			t.Errorf("who waits for long: %v", err)
		}
		close(goOn)
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}

// Questions that are lost are repeated, a few times.
func TestLostQuestions(t *testing.T) {
	path := edgeFile(t, 200_000)
	synctest.Test(t, func(t *testing.T) {
		s := read.NewServer(64 << 20)
		defer s.Close()
		cable := errors.New("the cable is out")
		for _, fails := range []int{1, 2, 100} {
			asked := 0
			ask := remote.Ask(func(ctx context.Context, question []byte) ([]byte, error) {
				if asked++; asked%2 == 0 && fails < 100 || asked > 3 && fails == 100 {
					b := s.Answer(ctx, "peer", question)
					if strings.Contains(string(question), `"Do":"next"`) {
						_ = b // which is lost
						return nil, cable
					}
					return b, nil
				}
				return s.Answer(ctx, "peer", question), nil
			})
			err := ask.Scan(t.Context(), tabular.Query{Path: path, Format: "csv"}, func([]byte) error { return nil })
			if fails == 100 && !errors.Is(err, cable) || fails < 100 && err != nil {
				t.Errorf("%d: %v", fails, err)
			}
		}
		if err := direct(s).Scan(t.Context(), tabular.Query{Path: "edges.csv", Format: "csv"}, nil); err == nil || !strings.Contains(err.Error(), "absolute") {
			t.Error(err)
		}
	})
}

// Names of classes are numbered over all parts, wherever they lie.
func TestLabelsOfPartsMayBeNames(t *testing.T) {
	s := read.NewServer(0)
	defer s.Close()
	var parts []read.Part
	for i, labels := range []string{"0,2\n1,zebra\n", "2,ant\n3,\n"} {
		dir := t.TempDir()
		for name, text := range map[string]string{"edges.csv": fmt.Sprintf("%d,%d\n", 2*i, 2*i+1), "labels.csv": labels} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		parts = append(parts, read.Part{Label: fmt.Sprint("n", i), Node: fmt.Sprint("n", i), Path: dir, Ask: direct(s)})
	}
	src, err := read.OpenParts(t.Context(), parts, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(src.Meta().ClassNames, src.Labels()); got != "[2 ant zebra] [0 2 1 -1]" {
		t.Error(got)
	}
}

// Parts whose columns of features stand in another order are refused, wherever they lie: what
// is one feature here would be another there.
func TestPartsHaveTheSameFeatures(t *testing.T) {
	s := read.NewServer(0)
	defer s.Close()
	for name, c := range map[string]struct {
		file   string
		header [2]string
		fits   bool
	}{
		"nodes":            {"nodes.csv", [2]string{"id,age,height", "id,height,age"}, false},
		"features":         {"features.csv", [2]string{"id,a,b", "b,id,a"}, false},
		"others":           {"nodes.csv", [2]string{"id,a,b", "id,a,c"}, false},
		"ids elsewhere":    {"nodes.csv", [2]string{"id,Age,height", "age,id,height"}, true},
		"without a header": {"features.csv", [2]string{"id,a,b", "7,0,0"}, true},
	} {
		for _, far := range []bool{false, true} {
			var parts []read.Part
			for i, header := range c.header {
				dir := t.TempDir()
				for name, text := range map[string]string{"edges.csv": "0,1\n1,2\n", c.file: fmt.Sprintf("%s\n%d,%d,%d\n", header, i, i, i)} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				p := read.Part{Label: fmt.Sprint("n", i), Node: fmt.Sprint("n", i), Path: dir}
				if far {
					p.Ask = direct(s)
				}
				parts = append(parts, p)
			}
			_, err := read.OpenParts(t.Context(), parts, read.Options{})
			want := fmt.Sprintf("%s in n1 has other columns than %s in n0, or in another order: write all parts of a table with the same columns", c.file, c.file)
			if c.fits && err != nil || !c.fits && (err == nil || err.Error() != want) {
				t.Errorf("%s, far %v: %v", name, far, err)
			}
		}
	}
}
