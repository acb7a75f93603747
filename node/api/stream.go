package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"
)

// streamTimeout is how long a client may take to accept one line. After that it counts as
// gone, whatever TCP reports.
const streamTimeout = 30 * time.Second

// briefly bounds how long a request and its answer may take, while nothing is known of who makes
// it: else connections could be held for ever, by sending a body or taking an answer slowly.
func briefly(w http.ResponseWriter) {
	until := time.Now().Add(streamTimeout)
	out := http.NewResponseController(w)
	// If deadlines are not supported, there is no connection to hold.
	_, _ = out.SetReadDeadline(until), out.SetWriteDeadline(until)
}

// lasting ends what briefly began.
func lasting(w http.ResponseWriter) {
	out := http.NewResponseController(w)
	_, _ = out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{})
}

func (s server) monitor(r *http.Request) (<-chan LogLine, error) {
	level := slog.LevelInfo
	if l := r.URL.Query().Get("level"); l != "" {
		if err := level.UnmarshalText([]byte(l)); err != nil {
			return nil, Invalid("there is no log level %q: use debug, info, warn or error", l)
		}
	}
	return s.Logs(r.Context(), level), nil
}

// stream sends values as lines of JSON. It ends when the channel is closed, which the end
// of the request causes, or when the reader stalls.
func stream[T any](w http.ResponseWriter, values <-chan T) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	// Flush at once, so that the client knows that it is being served.
	if err := out.Flush(); err != nil {
		return
	}
	lines := json.NewEncoder(w)
	for v := range values {
		// If deadlines are not supported, the end of the request still ends this.
		_ = out.SetWriteDeadline(time.Now().Add(streamTimeout))
		if lines.Encode(v) != nil || out.Flush() != nil {
			return
		}
	}
}
