package api

import (
	"errors"
	"fmt"
	"net/http"
)

// Sentinels that a client's errors match.
var (
	// ErrNoDaemon: nobody listens at the address.
	ErrNoDaemon = errors.New("no daemon listens there")
	// ErrPermission: somebody does, but this user may not talk to it.
	ErrPermission = errors.New("this user may not talk to the daemon")
	// ErrGone: the daemon was there and ended, or broke off.
	ErrGone = errors.New("the daemon went away")
)

// Error is a refusal that crosses the API: an HTTP status and a sentence for
// whoever asked.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// NewError makes an Error with the given HTTP status.
func NewError(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Invalid says that the request itself is wrong.
func Invalid(format string, args ...any) error {
	return NewError(http.StatusBadRequest, format, args...)
}

// NotFound says that what the request names does not exist.
func NotFound(format string, args ...any) error {
	return NewError(http.StatusNotFound, format, args...)
}

// Conflict says that the request does not fit the state that things are in.
func Conflict(format string, args ...any) error {
	return NewError(http.StatusConflict, format, args...)
}

// Unavailable says that the node can't do it now, and may later.
func Unavailable(format string, args ...any) error {
	return NewError(http.StatusServiceUnavailable, format, args...)
}

// errorBody is how an Error looks on the wire.
type errorBody struct {
	Error string `json:"error"`
}
