package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPageIsServed(t *testing.T) {
	h := Locked(checked(t, &fake{}), "secret", "/run/x")
	if w := get(h, "/"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "<!doctype html>") || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v %.80s", w.Code, w.Header(), w.Body)
	}
	if w := get(h, "/page/main.js"); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	// A name that was made to resolve to loopback gets no page, and so no reader of the API.
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "evil.example:7947"
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("another host's page: %d", w.Code)
	}
}

// What nobody serves is refused in JSON, as all else.
func TestUnknownPaths(t *testing.T) {
	h := checked(t, &fake{})
	for path, want := range map[string]int{
		"/nope": 404, "/page": 404, "/page/": 404, "/page/nope.js": 404, "/page/page.go": 404, "/index.html": 404, "/v1": 404, "/v1/nope": 404, "/v1/join": 405,
	} {
		w := get(h, path)
		var e failure
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != want || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(e.Error, path) {
			t.Errorf("%s: %d %v %s (%v)", path, w.Code, w.Header(), w.Body, err)
		}
	}
	if w := get(h, "/v1/join"); w.Header().Get("Allow") != "POST" || !strings.Contains(w.Body.String(), "use POST") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	if w := post(h, "/", "{}"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST to the page: %d", w.Code)
	}
	// A path that is not clean still leads to the one that is.
	if w := get(h, "//v1/status"); w.Code/100 != 3 || w.Header().Get("Location") != "/v1/status" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := get(h, "//nope"); w.Code/100 != 3 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
