package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/hopmesh/hopmesh/node/api/once"
)

// maxBody bounds a request's body.
const maxBody = 1 << 20

// decode reads exactly one JSON document. All of its fields must be known and occur once.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Now().Add(streamTimeout)) // if that is not supported, a request ends with its client
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return unreadable(err)
	}
	_ = out.SetReadDeadline(time.Time{})
	if err := once.Check(body); err != nil {
		return Invalid("%v", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return unreadable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			return Invalid("the request holds more than one JSON document")
		}
		return unreadable(err)
	}
	return nil
}

func unreadable(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return NewError(http.StatusRequestEntityTooLarge, "the request is larger than %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return NewError(http.StatusRequestTimeout, "the request did not arrive within %s: send it again", streamTimeout)
	}
	if errors.Is(err, io.EOF) {
		return Invalid("the request has no body")
	}
	return Invalid("the request can't be read: %v", err)
}

// answer writes v, or err if there is one.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		fail(w, err)
		return
	}
	send(w, http.StatusOK, v)
}

// fail writes an error as its sentence.
func fail(w http.ResponseWriter, err error) {
	send(w, statusOf(err), failure{err.Error()})
}

func statusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status
	}
	return http.StatusInternalServerError
}

func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client went away
}
