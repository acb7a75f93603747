package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// get asks as a program on the same machine would, over TCP.
func get(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:7947"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestBrowsersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		method, host, origin, contentType string
		want                              int
	}{
		"a program":              {"GET", "127.0.0.1:7947", "", "", 200},
		"by name":                {"GET", "LOCALHOST:7947", "", "", 200},
		"without a port":         {"GET", "localhost", "", "", 200},
		"IPv6":                   {"GET", "[::1]:7947", "", "", 200},
		"IPv6 without a port":    {"GET", "[::1]", "", "", 200},
		"a name made to resolve": {"GET", "evil.example:7947", "", "", 403},
		"a name that looks so":   {"GET", "127.0.0.1.evil.example", "", "", 403},
		"no host":                {"GET", "", "", "", 403},
		"a page":                 {"GET", "localhost:7947", "https://evil.example", "", 403},
		"a sandboxed page":       {"GET", "localhost:7947", "null", "", 403},
		"its own page":           {"GET", "localhost:7947", "http://localhost:7947", "", 200},
		"its page on a rebound":  {"GET", "evil.example:7947", "http://evil.example:7947", "", 403},
		"another port's page":    {"GET", "localhost:7947", "http://localhost:80", "", 403},
		"its own page changes":   {"POST", "localhost:7947", "http://localhost:7947", "application/json", 403},
		"a form":                 {"POST", "localhost:7947", "", "application/x-www-form-urlencoded", 415},
		"plain text":             {"POST", "localhost:7947", "", "text/plain", 415},
		"no type":                {"POST", "localhost:7947", "", "", 415},
		"a program that posts":   {"POST", "localhost:7947", "", "application/json", 200},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/v1/status"
			if c.method == "POST" {
				path = "/v1/leave"
			}
			f := &fake{}
			r := httptest.NewRequest(c.method, path, nil)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if c.contentType != "" {
				r.Header.Set("Content-Type", c.contentType)
			}
			w := httptest.NewRecorder()
			checked(t, f).ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if c.want != 200 && f.last() != nil {
				t.Error("the backend was asked all the same")
			}
		})
	}
}

// The daemon's own page may ask for a forecast, and no other page may.
func TestOwnPageForecasts(t *testing.T) {
	for origin, want := range map[string]int{"http://localhost:7947": 400, "http://localhost:80": 403, "https://evil.example": 403, "null": 403} {
		r := httptest.NewRequest("POST", "/v1/forecasts", strings.NewReader("{}"))
		r.Host = "localhost:7947"
		r.Header.Set("Origin", origin)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		Handler(&fake{}, metrics()).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", origin, w.Code, want, w.Body)
		}
	}
}

func TestPublicAddressesShowOnlyHealth(t *testing.T) {
	h := PublicHandler(&fake{}, metrics())
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200,
		"/v1/members": 403, "/v1/plan": 403, "/v1/events": 403, "/debug/pprof/": 403, "/debug/pprof/cmdline": 403, "/": 403,
	} {
		if w := get(h, path); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	if w := post(h, "/v1/leave", "{}"); w.Code != 403 {
		t.Errorf("leave: %d", w.Code)
	}
	if w := get(checked(t, &fake{}), "/debug/pprof/cmdline"); w.Code != 200 {
		t.Errorf("pprof on loopback: %d", w.Code)
	}
}

func TestReadyz(t *testing.T) {
	f := &fake{checks: []Check{{Name: "member", OK: true, Detail: "mesh aa"}, {Name: "leader"}, {Name: "plan", Detail: "generation 0"}}}
	h := checked(t, f)
	for path, want := range map[string]string{
		"/readyz":         "not ready: leader plan\n",
		"/readyz?verbose": "[+] member: mesh aa\n[-] leader\n[-] plan: generation 0\nnot ready: leader plan\n",
	} {
		if w := get(h, path); w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	f.checks = f.checks[:1]
	if w := get(h, "/readyz"); w.Code != 200 || w.Body.String() != "ready\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestBadRequests(t *testing.T) {
	large := `{"token":"` + strings.Repeat("x", maxBody) + `"}`
	for name, c := range map[string]struct {
		path, body string
		want       int
		says       string
	}{
		"no body":            {"/v1/join", "", 400, "no body"},
		"no JSON":            {"/v1/join", "peers", 400, "can't be read"},
		"half":               {"/v1/join", `{"peers":["a:1"]`, 400, "can't be read"},
		"a field too many":   {"/v1/join", `{"peer":"a:1"}`, 400, "peer"},
		"a wrong type":       {"/v1/join", `{"peers":"a:1"}`, 400, "can't be read"},
		"two documents":      {"/v1/join", `{} {}`, 400, "more than one"},
		"a tail":             {"/v1/join", `{} x`, 400, "can't be read"},
		"too large":          {"/v1/join", large, 413, "larger"},
		"too large a tail":   {"/v1/join", "{}" + strings.Repeat(" ", maxBody), 413, "larger"},
		"nobody":             {"/v1/force-leave", `{"revoke":true}`, 400, "no node"},
		"a life that is not": {"/v1/tokens", `{"ttl":"1y"}`, 400, `"1y"`},
		"a negative life":    {"/v1/tokens", `{"ttl":"-1h"}`, 400, `"-1h"`},
		"a nameless dataset": {"/v1/datasets/import", `{"source":"/a"}`, 400, "names no dataset"},
		"a field of another": {"/v1/datasets/generate", `{"name":"a","source":"/a"}`, 400, "source"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			w := post(checked(t, f), c.path, c.body)
			var e failure
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != c.want || !strings.Contains(e.Error, c.says) {
				t.Errorf("%d %s (%v)", w.Code, w.Body, err)
			}
			if f.last() != nil {
				t.Errorf("the backend was asked %v", f.last())
			}
		})
	}
	if w := get(checked(t, &fake{}), "/v1/monitor?level=loud"); w.Code != 400 || !strings.Contains(w.Body.String(), "loud") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// deaf is a client that takes nothing.
type deaf struct{ http.ResponseWriter }

var errDeaf = errors.New("nobody listens")

func (deaf) Write([]byte) (int, error) { return 0, errDeaf }
func (deaf) Flush()                    {}

func TestStreamEndsWithItsReader(t *testing.T) {
	values := make(chan Event, 2)
	values <- Event{}
	values <- Event{}
	stream(deaf{httptest.NewRecorder()}, values) // returns, though the channel stays open
	if len(values) != 1 {
		t.Errorf("%d values left of 2, want 1", len(values))
	}
}

// FuzzRequests sends arbitrary bodies to whatever reads one: a refusal is a
// sentence with a status of its own, and what is granted was understood.
func FuzzRequests(f *testing.F) {
	paths := []string{"/v1/join", "/v1/force-leave", "/v1/tokens", "/v1/datasets/import", "/v1/datasets/generate"}
	for i, seed := range []string{
		`{"peers":["10.0.0.1:7946"],"token":"hm1-x"}`, `{"name":"beta","revoke":true}`, `{"ttl":"24h"}`,
		`{"name":"cora","source":"/g/cora.npz","format":"npz","replicas":2,"memory":1024}`,
		`{"name":"big","kind":"sbm","vertices":10,"edges":20,"inside":0.5,"seed":18446744073709551615}`,
		``, `null`, `[]`, `{`, `{"peers":[null]}`, `{"ttl":"9999999h"}`, `{"ttl":1}`, "{}\x00", `{"name":"\ud800"}`, strings.Repeat("[", 20000),
	} {
		f.Add(uint8(i), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		b := &fake{}
		w := post(checked(t, b), paths[int(which)%len(paths)], string(body))
		switch w.Code {
		case http.StatusOK:
			if !json.Valid(body) {
				t.Errorf("granted: %q", body)
			}
			if b.last() == nil {
				t.Errorf("granted without asking: %q", body)
			}
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			var e failure
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == "" {
				t.Errorf("%q is no refusal: %v", w.Body, err)
			}
			if b.last() != nil {
				t.Errorf("refused and done: %q", body)
			}
		default:
			t.Errorf("status %d for %q", w.Code, body)
		}
		_, _ = io.Copy(io.Discard, w.Result().Body)
	})
}
