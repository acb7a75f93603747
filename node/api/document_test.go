package api

import (
	"bytes"
	"compress/gzip"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/node/api/openapi"
)

var update = flag.Bool("update", false, "write openapi.json and openapi.json.gz from the routes")

// access describes who may use a route, and names the scopes of tokens with which it may be used
// over TLS.
func (w who) access() (says string, scopes []string) {
	switch w {
	case anybody:
		return "Anybody may ask who reaches the address.", nil
	case readers:
		return "On the socket and on loopback anybody may ask who reaches them. Over TLS a token is needed.", []string{"read"}
	case operators:
		return "On the socket anybody may ask who reaches it. On loopback the secret is needed, and over TLS a token of the scope operate.", []string{"operate"}
	case owners:
		return "On the socket anybody may ask who reaches it. On loopback the secret is needed. Over TLS nobody may.", nil
	case programs:
		return "On the socket alone.", nil
	}
	return "", nil
}

// operation returns a route as METHOD and PATH.
func (r route) operation() (method, path string) {
	method, path, _ = strings.Cut(r.pattern, " ")
	return method, strings.TrimSuffix(path, "{$}")
}

// described reports whether a route is in the document: the files of the page are its own affair.
func (r route) described() bool { return !strings.HasPrefix(r.pattern, "GET /page/") }

func allRoutes() []route { return server{&fake{}}.routes(metrics()) }

// documented makes the document from the routes.
func documented(t *testing.T) []byte {
	t.Helper()
	comments, err := openapi.Comments(".", "../../engine/epoch")
	if err != nil {
		t.Fatal(err)
	}
	about := openapi.API{
		Title: "hopmesh", Version: "1",
		Description: "The HTTP API of a node. Every node answers for the whole mesh. What commands print with --json are the same documents. " +
			"Fields may be added to answers; a request with a field that is not described is refused.",
		Failure: reflect.TypeFor[failure](), Comments: comments,
		Scopes: map[string]string{"read": "reads what is not secret", "operate": "reads, and changes datasets, jobs and tokens; lets nobody in and shows no key"},
		Fields: map[string][]reflect.Type{"Status.problems": {reflect.TypeFor[string](), reflect.TypeFor[Damage]()}},
	}
	for _, r := range allRoutes() {
		if !r.described() {
			continue
		}
		o := openapi.Operation{Summary: r.says, In: r.in, Out: r.out, Optional: r.some, Media: r.media}
		o.Method, o.Path = r.operation()
		o.Access, o.Scopes = r.who.access()
		for _, q := range r.query {
			o.Query = append(o.Query, openapi.Parameter{Name: q.name, Description: q.says})
		}
		about.Operations = append(about.Operations, o)
	}
	b, err := openapi.Document(about)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The document that daemons serve is the one that the routes and their types make. How gzip packs
// it may change with Go, so what is packed is compared, and written only if it changes.
func TestDocumentIsThatOfTheRoutes(t *testing.T) {
	want := documented(t)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		if packed, err := unpackDocument(); err == nil && bytes.Equal(packed, want) {
			return
		}
		if err := os.WriteFile("openapi.json.gz", pack(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	const again = "is not what the routes say: run go test ./node/api -run TestDocument -update, and look at the difference"
	if plain, err := os.ReadFile("openapi.json"); err != nil || !bytes.Equal(plain, want) {
		t.Errorf("openapi.json %s (%v)", again, err)
	}
	if packed, err := unpackDocument(); err != nil || !bytes.Equal(packed, want) {
		t.Errorf("openapi.json.gz %s (%v)", again, err)
	}
	// No name, no date: the same text gives the same bytes.
	if len(document) < 10 || document[3] != 0 || !bytes.Equal(document[4:8], make([]byte, 4)) {
		t.Errorf("openapi.json.gz begins with % x", document[:min(10, len(document))])
	}
}

// pack returns a text as gzip, without a name and a date.
func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestClientsGetTheDocumentAsTheyTakeIt(t *testing.T) {
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for accepts, packed := range map[string]bool{
		"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=x": false, "gzipped": false, "br, gzip;q=": false,
		"gzip": true, "GZIP": true, "br, gzip": true, "deflate, gzip;q=1.0, *;q=0.5": true, "gzip;q=0.1": true, "br ; q=1 , gzip ; q=0.5": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/openapi.json", nil)
		r.Host = "127.0.0.1:7947"
		if accepts != "" {
			r.Header.Set("Accept-Encoding", accepts)
		}
		w := httptest.NewRecorder()
		Handler(&fake{}, metrics()).ServeHTTP(w, r)
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Content-Type") != mediaJSON || h.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: status %d, header %v", accepts, w.Code, h)
		}
		if got := h.Get("Content-Encoding"); (got == "gzip") != packed {
			t.Errorf("%q: the encoding is %q", accepts, got)
		}
		body := w.Body.Bytes()
		if packed {
			in, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatalf("%q: %v", accepts, err)
			}
			if body, err = io.ReadAll(in); err != nil {
				t.Fatalf("%q: %v", accepts, err)
			}
		}
		if !bytes.Equal(body, want) {
			t.Errorf("%q: %d bytes, want the %d of openapi.json", accepts, len(body), len(want))
		}
	}
	two := []string{"br", "gzip"}
	if !acceptsGzip(two) || acceptsGzip(nil) {
		t.Errorf("%q accepts gzip: %v; nothing accepts it: %v", two, acceptsGzip(two), acceptsGzip(nil))
	}
}

// Each route is described, and nothing is served past the table of routes.
func TestEveryHandlerIsARoute(t *testing.T) {
	c, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for _, r := range allRoutes() {
		method, path := r.operation()
		if r.described() {
			routes = append(routes, method+" "+path)
		}
		if r.says == "" || !strings.HasSuffix(r.says, ".") || r.serve == nil {
			t.Errorf("%s is not described by a sentence: %q", r.pattern, r.says)
		}
		if body := method == http.MethodGet || method == http.MethodDelete; body && r.in != nil {
			t.Errorf("%s takes a body", r.pattern)
		}
	}
	slices.Sort(routes)
	if got := c.Operations(); !slices.Equal(slices.Sorted(slices.Values(got)), routes) {
		t.Errorf("described: %v\nserved: %v", got, routes)
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	registered := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is {
				if s, is := call.Fun.(*ast.SelectorExpr); is && (s.Sel.Name == "Handle" || s.Sel.Name == "HandleFunc") {
					registered[f.Name()]++
				}
			}
			return true
		})
	}
	// The loops over the routes, and what PublicHandler answers to all else.
	if want := map[string]int{"handler.go": 3, "remote.go": 1}; !reflect.DeepEqual(registered, want) {
		t.Errorf("handlers are registered %v times, want %v: put them into the table of routes", registered, want)
	}
}

// What a route says of who may use it on loopback is what the lock does.
func TestRoutesSayWhatTheLockDoes(t *testing.T) {
	for _, r := range allRoutes() {
		method, path := r.operation()
		q, err := http.NewRequestWithContext(t.Context(), method, strings.NewReplacer("{id}", "j1", "{name}", "d").Replace(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := onlyReads(q), r.who <= readers; got != want {
			t.Errorf("%s is open on loopback: %v, and described as: %v", r.pattern, got, want)
		}
	}
}

var checker = sync.OnceValues(func() (*openapi.Checker, error) {
	plain, err := unpackDocument()
	if err != nil {
		return nil, err
	}
	return openapi.NewChecker(plain)
})

// checked is the handler of a backend, and checks each of its answers against the document.
func checked(t testing.TB, f *fake) http.Handler {
	return checkedBy(t, Handler(f, metrics()))
}

func checkedBy(t testing.TB, h http.Handler) http.Handler {
	c, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &witness{ResponseWriter: w}
		h.ServeHTTP(seen, r)
		switch {
		case r.Pattern == "", strings.HasPrefix(r.Pattern, "GET /page/"): // no route, or none of the API
			return
		case seen.status == 0, seen.status/100 == 3, seen.failed: // nothing was sent, or a redirection, or nobody took it
			return
		}
		method, path, _ := strings.Cut(r.Pattern, " ")
		if err := c.Answer(method+" "+strings.TrimSuffix(path, "{$}"), seen.status, w.Header().Get("Content-Type"), seen.body.Bytes()); err != nil {
			t.Error(err)
		}
	})
}

// witness keeps a copy of an answer.
type witness struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	failed bool
}

func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *witness) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.body.Write(b)
	n, err := w.ResponseWriter.Write(b)
	w.failed = w.failed || err != nil
	return n, err
}
