package page

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(f File, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, f.Path(), nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

func TestFilesAreServed(t *testing.T) {
	kinds := map[string]string{
		"/": "text/html; charset=utf-8", "/page/style.css": "text/css; charset=utf-8",
		"/page/main.js": "text/javascript; charset=utf-8", "/page/icon.svg": "image/svg+xml",
	}
	for _, f := range Files() {
		w := get(f, "")
		if w.Code != http.StatusOK || w.Body.String() != string(f.Body) || w.Body.Len() == 0 {
			t.Errorf("%s: %d with %d bytes", f.Path(), w.Code, w.Body.Len())
		}
		h := w.Header()
		if want := kinds[f.Path()]; want != "" {
			if h.Get("Content-Type") != want {
				t.Errorf("%s is %s, not %s", f.Path(), h.Get("Content-Type"), want)
			}
			delete(kinds, f.Path())
		}
		if h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'self';") {
			t.Errorf("%s is sent with %v", f.Path(), h)
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("the policy allows what is inline: %s", h.Get("Content-Security-Policy"))
		}
		tag := h.Get("ETag")
		if w := get(f, tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s is sent again: %d", f.Path(), w.Code)
		}
		if w := get(f, `"another"`); w.Code != http.StatusOK {
			t.Errorf("%s is not sent to who has another: %d", f.Path(), w.Code)
		}
	}
	for path := range kinds {
		t.Errorf("there is no %s", path)
	}
}

// maxSize bounds what a browser loads.
const maxSize = 300 << 10

func TestSize(t *testing.T) {
	sum := 0
	for _, f := range Files() {
		sum += len(f.Body)
	}
	if sum > maxSize {
		t.Errorf("the page has %d bytes, at most %d are allowed", sum, maxSize)
	}
}

var (
	elsewhere = regexp.MustCompile(`(?i)[a-z]+:\\?/\\?/[^\s"'` + "`" + `)]*|["'(]//[a-z]`)
	markup    = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|style=|<script>|\son[a-z]+="`)
	used      = regexp.MustCompile(`(?:href|src)="(/page/[^"]+)"|from "\./([^"]+)"`)
)

// The names of namespaces look like addresses, and nothing is fetched from them.
const svgSpace = "http://www.w3.org/2000/svg"

func TestNothingComesFromElsewhere(t *testing.T) {
	there, wanted := map[string]bool{}, map[string]string{}
	for _, f := range Files() {
		there[f.Path()] = true
		text := string(f.Body)
		for _, url := range elsewhere.FindAllString(text, -1) {
			if url != svgSpace {
				t.Errorf("%s names %s", f.Path(), url)
			}
		}
		for _, m := range markup.FindAllString(text, -1) {
			t.Errorf("%s has %q: what comes from the API is text, and the policy forbids inline code", f.Path(), m)
		}
		for _, m := range used.FindAllStringSubmatch(text, -1) {
			path := m[1]
			if m[2] != "" {
				path = "/page/" + m[2]
			}
			wanted[path] = f.Path()
		}
	}
	for path, by := range wanted {
		if !there[path] {
			t.Errorf("%s uses %s, which there is not", by, path)
		}
	}
	for path := range there {
		if path != "/" && wanted[path] == "" {
			t.Errorf("nothing uses %s", path)
		}
	}
}
