package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// over asks as another machine does that has reached the TLS port.
func over(h http.Handler, method, path, token string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Host, r.TLS = "mesh.example:7947", &tls.ConnectionState{}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func withTokens() *fake {
	return &fake{scopes: map[string]string{"r": ScopeRead, "o": ScopeOperate, "odd": "admin"}}
}

// Each route is served to exactly those whom its description names.
func TestScopesOverTLS(t *testing.T) {
	for _, r := range (server{withTokens()}).routes(metrics()) {
		method, path := r.operation()
		path = strings.NewReplacer("{id}", "j1", "{name}", "d").Replace(path)
		if strings.HasPrefix(path, "/debug/pprof/profile") || strings.HasPrefix(path, "/debug/pprof/trace") {
			continue // they would take their time if they were served
		}
		for token, scope := range map[string]string{"": "", "r": ScopeRead, "o": ScopeOperate, "odd": "admin"} {
			f := withTokens()
			f.happen, f.lines = make(chan Event), make(chan LogLine)
			close(f.happen)
			close(f.lines)
			w := over(checkedBy(t, Remote(f, metrics())), method, path, token)
			may := r.who == anybody || r.who == readers && (scope == ScopeRead || scope == ScopeOperate) || r.who == operators && scope == ScopeOperate
			page := strings.HasPrefix(r.pattern, "GET /page/") || r.pattern == "GET /{$}"
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			switch {
			case page && w.Code == http.StatusOK:
				t.Errorf("%s is served", r.pattern)
			case !page && refused == may:
				t.Errorf("%s to %q: %d %s", r.pattern, scope, w.Code, w.Body)
			case refused && f.last() != nil:
				t.Errorf("%s to %q: refused, and the backend was asked %v", r.pattern, scope, f.last())
			case refused:
				var e failure
				if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" {
					t.Errorf("%s to %q: %s", r.pattern, scope, w.Body)
				}
			}
		}
	}
}

func TestWhoIsRefusedOverTLS(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, token string
		change              func(*http.Request)
		want                int
		says                string
	}{
		"nobody":                  {"GET", "/v1/status", "", nil, 401, "hopmesh api token create"},
		"another token":           {"GET", "/v1/status", "x", nil, 401, "not known here"},
		"half a token":            {"GET", "/v1/status", "r ", nil, 401, ""},
		"another scheme":          {"GET", "/v1/status", "", func(r *http.Request) { r.SetBasicAuth("r", "r") }, 401, ""},
		"in the address":          {"GET", "/v1/status?token=r&access_token=r", "", nil, 401, ""},
		"a reader who writes":     {"POST", "/v1/jobs/j1/stop", "r", nil, 403, "this one has the scope read"},
		"a reader who makes HEAD": {"HEAD", "/v1/status", "r", nil, 200, ""},
		"a page":                  {"GET", "/v1/status", "o", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, "web pages"},
		"its own page":            {"GET", "/v1/status", "o", func(r *http.Request) { r.Header.Set("Origin", "https://mesh.example:7947") }, 403, "web pages"},
		"its own page in plain":   {"GET", "/v1/status", "o", func(r *http.Request) { r.Header.Set("Origin", "http://mesh.example:7947") }, 403, "web pages"},
		"a page that asks health": {"GET", "/healthz", "", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, "web pages"},
		"a form":                  {"POST", "/v1/jobs/j1/stop", "o", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, "application/json"},
		"an override":             {"GET", "/v1/jobs/j1", "r", func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "DELETE") }, 200, ""},
		"nothing there":           {"GET", "/v1/none", "", nil, 401, "token"},
		"nothing there to see":    {"GET", "/v1/none", "r", nil, 404, "there is nothing at"},
		"the page":                {"GET", "/", "r", nil, 404, "nothing at /: the API is below /v1, and /openapi.json describes it; the page is served on loopback only"},
		"a path around":           {"POST", "/v1/x/../backup", "o", nil, 403, "not served to other machines"},
		"an operator's backup":    {"POST", "/v1/backup", "o", nil, 403, "not served to other machines"},
		"an operator's token":     {"POST", "/v1/access", "o", nil, 403, "not served to other machines"},
		"an operator's newcomers": {"POST", "/v1/tokens", "o", nil, 403, "not served to other machines"},
		"an operator's profile":   {"GET", "/debug/pprof/heap", "o", nil, 403, "not served to other machines"},
		"an operator":             {"POST", "/v1/jobs/j1/stop", "o", nil, 200, ""},
	} {
		var change []func(*http.Request)
		if c.change != nil {
			change = append(change, c.change)
		}
		w := over(Remote(withTokens(), metrics()), c.method, c.path, c.token, change...)
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
		if w.Code == http.StatusUnauthorized && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// Who tries tokens is slowed down, also with the right one then, and nobody else is.
func TestManyWrongTokens(t *testing.T) {
	f := withTokens()
	h := Remote(f, metrics())
	from := func(addr string) func(*http.Request) { return func(r *http.Request) { r.RemoteAddr = addr } }
	codes := map[int]int{}
	for range 30 {
		codes[over(h, "GET", "/v1/status", "x", from("192.0.2.1:1")).Code]++
	}
	if codes[401] != 10 || codes[429] != 20 {
		t.Errorf("answers: %v", codes)
	}
	w := over(h, "GET", "/v1/status", "y", from("192.0.2.1:2"))
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "try again in") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := over(h, "GET", "/v1/status", "r", from("192.0.2.1:2")); w.Code != 200 {
		t.Errorf("a right token of another machine behind that address: %d", w.Code)
	}
	if w := over(h, "GET", "/v1/status", "x", from("192.0.2.2:1")); w.Code != 401 {
		t.Errorf("another host: %d", w.Code)
	}
	if w := over(h, "GET", "/healthz", "", from("192.0.2.1:1")); w.Code != 200 {
		t.Errorf("health: %d", w.Code)
	}
	// What says nothing of a token is no failure of who shows it.
	out := &outside{withTokens()}
	for range 30 {
		if w := over(Remote(out, metrics()), "GET", "/v1/status", "r"); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("in no mesh: %d %s", w.Code, w.Body)
		}
	}
}

type outside struct{ *fake }

func (*outside) Scope(string) (string, error) { return "", Unavailable("this node is in no mesh") }

// A stream ends with its token.
func TestStreamsEndWithTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := withTokens()
		f.happen = make(chan Event)
		done := make(chan *httptest.ResponseRecorder)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			done <- over(Remote(f, metrics()), "GET", "/v1/events", "r", func(r *http.Request) { *r = *r.WithContext(ctx) })
		}()
		<-time.After(time.Hour)
		select {
		case <-done:
			t.Fatal("it ended while the token held")
		default:
		}
		f.mu.Lock()
		delete(f.scopes, "r")
		f.mu.Unlock()
		begun := time.Now()
		if w := <-done; w.Code != http.StatusOK {
			t.Errorf("%d", w.Code)
		}
		if took := time.Since(begun); took > recheck {
			t.Errorf("it ended %s after the token", took)
		}
	})
}

// pipes is a listener whose connections are pipes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial returns a connection to a handler.
func (p pipes) dial() net.Conn {
	here, there := net.Pipe()
	p <- there
	return here
}

// Who shows no token can't hold a connection by sending or taking slowly, and who shows one can for
// as long as a request lasts, once it is whole.
func TestSlowClients(t *testing.T) {
	const stalls, post = "Content-Type: application/json\r\nContent-Length: 1000\r\n", "POST /v1/jobs/j1/stop"
	for name, c := range map[string]struct {
		handler func(*fake) http.Handler
		asks    string
		reads   bool
	}{
		"a body without a token":   {nil, post + " HTTP/1.1\r\n" + stalls, true},
		"a body for anybody":       {nil, "GET /healthz HTTP/1.1\r\n" + stalls, true},
		"an answer for anybody":    {nil, "GET /openapi.json HTTP/1.1\r\n", false},
		"a body with a token":      {nil, "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer o\r\n" + stalls, true},
		"a body to a public port":  {func(f *fake) http.Handler { return PublicHandler(f, metrics()) }, "GET /healthz HTTP/1.1\r\n" + stalls, true},
		"a public port's refusal":  {func(f *fake) http.Handler { return PublicHandler(f, metrics()) }, post + " HTTP/1.1\r\n" + stalls, false},
		"a body on the own socket": {func(f *fake) http.Handler { return Handler(f, metrics()) }, "POST /v1/jobs HTTP/1.1\r\n" + stalls, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h http.Handler
			if f := withTokens(); c.handler == nil {
				h = Remote(f, metrics())
			} else {
				h = c.handler(f)
			}
			l := make(pipes)
			s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
			go func() { _ = s.Serve(l) }()
			conn := l.dial()
			if _, err := io.WriteString(conn, c.asks+"Host: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if c.reads {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
			<-time.After(3 * streamTimeout)
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Errorf("%s: the connection is held", name)
			}
			_ = conn.Close()
			close(l)
			_ = s.Close()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := withTokens()
		f.happen = make(chan Event)
		l := make(pipes)
		s := &http.Server{Handler: Remote(f, metrics())}
		go func() { _ = s.Serve(l) }()
		conn := l.dial()
		if _, err := io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: z\r\nAuthorization: Bearer r\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		<-time.After(time.Hour)
		f.happen <- Event{Message: "late"}
		var e Event
		if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.Message != "late" {
			t.Errorf("%+v, %v", e, err)
		}
		close(f.happen)
		_ = conn.Close()
		close(l)
		_ = s.Close()
	})
}
