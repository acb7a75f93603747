package api

import (
	"fmt"
	"net/http"
	"strings"
)

// healthz reports only that the process is alive and answers.
func (s server) healthz(w http.ResponseWriter, _ *http.Request) {
	text(w, http.StatusOK, "ok\n")
}

// readyz reports whether the node can do its work; with ?verbose, it lists each check.
func (s server) readyz(w http.ResponseWriter, r *http.Request) {
	var list, failed strings.Builder
	for _, c := range s.Ready(r.Context()) {
		mark := "+"
		if !c.OK {
			mark = "-"
			fmt.Fprintf(&failed, " %s", c.Name)
		}
		fmt.Fprintf(&list, "[%s] %s", mark, c.Name)
		if c.Detail != "" {
			fmt.Fprintf(&list, ": %s", c.Detail)
		}
		list.WriteByte('\n')
	}
	status, verdict := http.StatusOK, "ready\n"
	if failed.Len() > 0 {
		status, verdict = http.StatusServiceUnavailable, "not ready:"+failed.String()+"\n"
	}
	if r.URL.Query().Has("verbose") {
		verdict = list.String() + verdict
	}
	text(w, status, verdict)
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // an error means that the client went away
}
