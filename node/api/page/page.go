// Package page has the files of the browser's view of a mesh, which every daemon serves at
// the root of its API. They read the API and nothing else.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// types are the media types by extension. The system's table, which may lack some or have
// others, must not decide whether a browser runs a module.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policy allows what the daemon itself serves and nothing inline, so that a name which comes
// from a user can never become a script or a style.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A File is one file of the page.
type File struct {
	Pattern string // where it is served, as http.ServeMux has it
	Body    []byte
	kind    string
	tag     string
}

// Files returns all files: index.html at the root, the others below /page/.
func Files() []File {
	entries, err := static.ReadDir("static")
	if err != nil {
		panic("page: the embedded folder can't be read: " + err.Error()) // it is part of the program
	}
	files := make([]File, len(entries))
	for i, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		kind := types[path.Ext(e.Name())]
		if err != nil || kind == "" {
			panic("page: no file to serve: " + e.Name())
		}
		sum := sha256.Sum256(body)
		files[i] = File{Pattern: "/page/" + e.Name(), Body: body, kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`}
		if e.Name() == "index.html" {
			files[i].Pattern = "/{$}"
		}
	}
	return files
}

// ServeHTTP serves the file. Browsers keep it, and ask each time whether it has changed: after
// an upgrade nobody sees a page of two versions.
func (f File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Body))
}

// Path returns where the file is served.
func (f File) Path() string { return strings.TrimSuffix(f.Pattern, "{$}") }
