package api

import (
	"errors"
	"fmt"
	"net/http"
)

// Errors that a client's errors match with errors.Is.
var (
	// ErrNoDaemon means that nobody listens at the address.
	ErrNoDaemon = errors.New("no daemon listens there")
	// ErrPermission means that this user may not connect to the daemon.
	ErrPermission = errors.New("this user may not talk to the daemon")
	// ErrGone means that the daemon ended or closed the connection during a request.
	ErrGone = errors.New("the daemon went away")
)

// Error is an error that crosses the API: an HTTP status and a sentence for the user.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// NewError makes an Error with the given HTTP status.
func NewError(status int, format string, args ...any) error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an error for a request that is wrong in itself.
func Invalid(format string, args ...any) error {
	return NewError(http.StatusBadRequest, format, args...)
}

// NotFound returns an error for something that does not exist.
func NotFound(format string, args ...any) error {
	return NewError(http.StatusNotFound, format, args...)
}

// Conflict returns an error for a request that does not fit the current state.
func Conflict(format string, args ...any) error {
	return NewError(http.StatusConflict, format, args...)
}

// Unavailable returns an error for a request that the node can't serve now, but may
// later.
func Unavailable(format string, args ...any) error {
	return NewError(http.StatusServiceUnavailable, format, args...)
}

// failure is an Error on the wire.
type failure struct {
	Error string `json:"error"`
}

// NoDataset returns the sentence for a name that no dataset has.
func NoDataset(name string) string {
	return fmt.Sprintf("there is no dataset %s: `hopmesh dataset list` shows those there are", name)
}
