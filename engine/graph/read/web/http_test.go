package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

func TestMain(m *testing.M) {
	for i := range pauses {
		pauses[i] = min(pauses[i], time.Millisecond)
	}
	os.Exit(m.Run())
}

// content is a file that is no multiple of a block.
func content(size int) []byte {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// A server has one file, and troubles.
type server struct {
	mu      sync.Mutex
	content []byte
	etag    string
	noRange bool // it sends everything, always
	noIf    bool // it does not know If-Range
	ifs     int  // requests with If-Range
	cut     int  // after so many bytes of an answer the connection ends; 0: never
	cuts    int  // how often still
	asked   []string
	sent    atomic.Int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Header.Get("Range"))
	b, etag, cut := s.content, s.etag, 0
	if s.noRange {
		r.Header.Del("Range")
	}
	if r.Header.Get("If-Range") == etag {
		s.ifs++
	}
	if s.noIf {
		r.Header.Del("If-Range")
	}
	if s.cuts > 0 {
		cut, s.cuts = s.cut, s.cuts-1
	}
	s.mu.Unlock()
	w.Header().Set("ETag", etag)
	out := &cutting{ResponseWriter: w, left: cut, whole: cut == 0, sent: &s.sent}
	if s.noRange {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = out.Write(b)
		return
	}
	http.ServeContent(out, r, "", time.Time{}, bytes.NewReader(b))
}

type cutting struct {
	http.ResponseWriter
	left  int
	whole bool
	sent  *atomic.Int64
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.whole {
		c.sent.Add(int64(len(b)))
		return c.ResponseWriter.Write(b)
	}
	n, err := c.ResponseWriter.Write(b[:min(c.left, len(b))])
	if c.left -= n; err == nil && c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func start(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func open(t *testing.T, address string) *File {
	t.Helper()
	f, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func all(f *File) ([]byte, error) { return io.ReadAll(io.NewSectionReader(f, 0, f.Size())) }

func TestReadAt(t *testing.T) {
	for _, size := range []int{0, 1, blockBytes - 1, blockBytes, 3*blockBytes + 5} {
		s := &server{content: content(size), etag: `"a"`}
		f := open(t, start(t, s)+"/f.csv?signed=secret")
		if f.Size() != int64(size) {
			t.Fatalf("%d bytes of %d", f.Size(), size)
		}
		if err := iotest.TestReader(io.NewSectionReader(f, 0, f.Size()), s.content); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Who reads in order gets ever more at a time, and each byte once.
func TestReadingInOrderAsksForMuchAtATime(t *testing.T) {
	s := &server{content: content(200 * blockBytes), etag: `"a"`}
	f := open(t, start(t, s)+"/f")
	if b, err := all(f); err != nil || !bytes.Equal(b, s.content) {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	f.Close()
	if s.sent.Load() != int64(len(s.content)) || len(s.asked) > 25 {
		t.Errorf("%d requests brought %d bytes of %d", len(s.asked), s.sent.Load(), len(s.content))
	}
	if len(f.blocks) > kept {
		t.Errorf("%d blocks are kept", len(f.blocks))
	}
}

// Columns that lie side by side are read in turns.
func TestReadingAtManyPlacesIsNoWaste(t *testing.T) {
	const columns, each = 12, 20
	s := &server{content: content(columns * each * blockBytes), etag: `"a"`}
	f := open(t, start(t, s)+"/f")
	f.keep = 16
	piece := make([]byte, 16<<10)
	for at := int64(0); at < each*blockBytes; at += int64(len(piece)) {
		for c := range int64(columns) {
			off := c*each*blockBytes + at
			if _, err := f.ReadAt(piece, off); err != nil || !bytes.Equal(piece, s.content[off:off+int64(len(piece))]) {
				t.Fatalf("at %d: %v", off, err)
			}
		}
	}
	f.Close()
	if sent := s.sent.Load(); 10*sent > 16*int64(len(s.content)) {
		t.Errorf("%d bytes were sent for %d", sent, len(s.content))
	}
}

// A connection that is cut is made again where it ended, however often.
func TestCutConnectionsGoOn(t *testing.T) {
	s := &server{content: content(20*blockBytes + 7), etag: `"a"`, cut: 100_000, cuts: 40}
	f := open(t, start(t, s)+"/f")
	b, err := all(f)
	if err != nil || !bytes.Equal(b, s.content) {
		t.Fatalf("%d bytes: %v", len(b), err)
	}
	if s.cuts != 0 {
		t.Fatalf("%d connections were not cut", s.cuts)
	}
	if s.ifs != len(s.asked)-1 {
		t.Errorf("%d of %d requests had If-Range", s.ifs, len(s.asked))
	}
	from := false
	for _, r := range s.asked {
		from = from || strings.HasPrefix(r, "bytes=362144-") // the second block, and what came of it
	}
	if !from {
		t.Errorf("asked for %q", s.asked)
	}
}

func TestAServerThatBringsNothingEndsTheReading(t *testing.T) {
	s := &server{content: content(3 * blockBytes), etag: `"a"`}
	f := open(t, start(t, s)+"/f.csv")
	s.mu.Lock()
	s.cut, s.cuts = 0, 0
	s.mu.Unlock()
	f.from = failing{}
	_, err := all(f)
	if want := "f.csv can't be read (it is down): check the network and the server, and import again"; err == nil || err.Error() != want {
		t.Error(err)
	}
	f.from = &overHTTP{} // a later read asks again
	f.from = newHTTP(mustParse(t, start(t, s)+"/f.csv"))
	if b, err := all(f); err != nil || !bytes.Equal(b, s.content) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) fetch(context.Context, int64, int64, string) (*answer, error) {
	return nil, errors.New("it is down")
}

func TestAFileThatChangesIsRefused(t *testing.T) {
	for name, change := range map[string]func(*server){
		"another file":      func(s *server) { s.content, s.etag = content(10*blockBytes), `"b"` },
		"a shorter file":    func(s *server) { s.content, s.etag = content(10), `"b"` },
		"the same, but new": func(s *server) { s.etag = `"b"` },
		"a weak mark":       func(s *server) { s.etag = `W/"b"` },
		"without If-Range":  func(s *server) { s.etag, s.noIf = `"b"`, true },
		"longer without":    func(s *server) { s.content, s.noIf = append(s.content, 1), true },
		"shorter without":   func(s *server) { s.content, s.noIf = content(10), true },
	} {
		s := &server{content: content(10 * blockBytes), etag: `"a"`}
		f := open(t, start(t, s)+"/f.csv")
		s.mu.Lock()
		change(s)
		s.mu.Unlock()
		_, err := all(f)
		if want := "f.csv was changed while it was read: import it again when nothing writes to it"; err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func noting(t *testing.T) (context.Context, func() string) {
	var mu sync.Mutex
	var notes []string
	return WithNote(t.Context(), func(n string) { mu.Lock(); defer mu.Unlock(); notes = append(notes, n) }), func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(notes, "; ")
	}
}

func TestAServerWithoutRangesIsCopied(t *testing.T) {
	s := &server{content: content(5*blockBytes + 3), etag: `"a"`, noRange: true}
	address := start(t, s) + "/f.csv"
	ctx, notes := noting(t)
	f, err := Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := all(f); err != nil || !bytes.Equal(b, s.content) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := notes(); got != "f.csv is copied to this machine first, since its server does not send parts of a file" {
		t.Error(got)
	}
	// The first request brings the answer's head only.
	s.cut, s.cuts = 2*blockBytes, 3
	ctx, notes = noting(t)
	if f, err = Open(ctx, address); err != nil {
		t.Fatal(err)
	}
	if b, err := all(f); err != nil || !bytes.Equal(b, s.content) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := notes(); !strings.Contains(got, "the connection was cut, and as the server does not send parts of a file, the copy of f.csv begins anew") {
		t.Error(got)
	}
	s.cuts = 100
	if _, err = Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), "f.csv was cut off 5 times and its server sends it only from the beginning") {
		t.Error(err)
	}
}

func TestWhatServersAnswer(t *testing.T) {
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	mux := http.NewServeMux()
	for path, code := range map[string]int{"/404": 404, "/401": 401, "/403": 403, "/410": 410, "/418": 418} {
		mux.Handle(path, answer(code))
	}
	for path, to := range map[string]string{"/loop": "/loop", "/file": "file:///etc/passwd", "/s3": "s3://b/k", "/own": "http://169.254.169.254/latest/meta-data"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	}
	mux.HandleFunc("/packed", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") })
	mux.HandleFunc("/lie", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 5-9/1000")
		w.WriteHeader(http.StatusPartialContent)
	})
	host := start(t, mux)
	plainHost := host
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plainHost+"/404", http.StatusFound) }))
	defer secure.Close()
	for address, want := range map[string]string{
		host + "/404?key=secret":           "there is no file at " + host + "/404 (404): check the address",
		host + "/410":                      "there is no file at " + host + "/410 (410): check the address",
		host + "/401?key=secret":           "the server refuses to send " + host + "/401 (401): give an address that is signed",
		host + "/403":                      "(403): give an address that is signed and has not expired, or a copy of the file",
		host + "/418":                      "the server answers 418 for " + host + "/418: check the address",
		host + "/loop":                     "the server sends on more than 5 times: check the address",
		host + "/file":                     `the server sends on to an address of "file"`,
		host + "/s3":                       `the server sends on to an address of "s3"`,
		host + "/own":                      "the address leads to 169.254.169.254, where machines find their own credentials, and is not read",
		host + "/packed":                   "packed (\"gzip\"), though it was asked not to",
		host + "/lie":                      "the server does not say which part it sends (\"bytes 5-9/1000\")",
		host + "/":                         "is a folder, and files behind http can't be listed: give the address of a file",
		secure.URL + "/x":                  "does not prove who it is",
		"http://[fd00:ec2::254]/x":         "the address leads to fd00:ec2::254",
		"http://u:p@example.org/x":         "http://example.org/x has a name or a password in it",
		"http://no-such-host.invalid./f":   "there is no host no-such-host.invalid.: check the address",
		"ftp://example.org/x":              "ftp://example.org/x can't be read: give an address of http, https, s3 or gs",
		"http:///x":                        "the address is not complete: write SCHEME://HOST/PATH",
		"http://127.0.0.1:1/f?secret=word": "f can't be read (127.0.0.1:1 can't be reached: dial tcp 127.0.0.1:1: connect: connection refused)",
	} {
		f, err := Open(t.Context(), address)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	// From https to http, with a certificate that is trusted.
	h := newHTTP(mustParse(t, secure.URL+"/x"))
	h.client.Transport = secure.Client().Transport
	if _, err := h.fetch(t.Context(), 0, 10, ""); err == nil || err.Error() != "the server sends on from https to http: give the file's own address" {
		t.Error(err)
	}
}

// A redirect may lead to another server, which learns nothing of the first.
func TestRedirects(t *testing.T) {
	s := &server{content: content(3 * blockBytes), etag: `"a"`}
	var referer atomic.Value
	to := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		referer.Store(r.Header.Get("Referer") + r.Header.Get("Authorization"))
		s.ServeHTTP(w, r)
	}))
	from := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }))
	f := open(t, from+"/f?secret=word")
	if b, err := all(f); err != nil || !bytes.Equal(b, s.content) {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	if got := referer.Load(); got != "" {
		t.Errorf("the second server was sent %q", got)
	}
}

// Closing ends what waits for a server.
func TestCloseEndsReads(t *testing.T) {
	hold := make(chan struct{})
	s := &server{content: content(3 * blockBytes), etag: `"a"`}
	first := make(chan struct{}, 1)
	first <- struct{}{}
	asked := make(chan struct{}, 10)
	address := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			s.ServeHTTP(w, r)
		default:
			asked <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	defer close(hold)
	f := open(t, address+"/f")
	ended := make(chan error)
	go func() { _, err := all(f); ended <- err }()
	<-asked
	f.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
