package api

import "net/http"

// worded serves mux, and puts the refusals of mux itself into sentences: of a path that it does
// not know, and of a method that a path does not have.
func worded(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			w = &refusal{ResponseWriter: w, request: r}
		}
		mux.ServeHTTP(w, r)
	})
}

// refusal writes an error in place of what is written to it.
type refusal struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

func (f *refusal) WriteHeader(status int) {
	method, path := f.request.Method, f.request.URL.Path
	switch f.refused = true; status {
	case http.StatusNotFound:
		where := "the page is at /, and the API below /v1"
		if f.request.TLS != nil {
			where = "the API is below /v1, and /openapi.json describes it; the page is served on loopback only"
		}
		fail(f.ResponseWriter, NotFound("there is nothing at %s: %s", path, where))
	case http.StatusMethodNotAllowed:
		fail(f.ResponseWriter, NewError(status, "there is no %s of %s: use %s", method, path, f.Header().Get("Allow")))
	default: // it sends the client elsewhere
		f.refused = false
		f.ResponseWriter.WriteHeader(status)
	}
}

func (f *refusal) Write(b []byte) (int, error) {
	if f.refused {
		return len(b), nil
	}
	return f.ResponseWriter.Write(b)
}
