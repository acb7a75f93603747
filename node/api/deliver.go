package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// The trailers of a file that is sent piece by piece. One marks it as complete. The other
// holds a status and an escaped sentence that explains why it is not.
const (
	trailerEnd   = "Hopmesh-End"
	trailerError = "Hopmesh-Error"
)

// delivered is how many bytes of a file are gathered before they are sent.
const delivered = 64 << 10

// deliver sends what run writes. If run fails before it has written much, the error is
// the answer, as for any other request.
func deliver(w http.ResponseWriter, run func(io.Writer) error) {
	d := &delivery{w: w, out: http.NewResponseController(w)}
	to := bufio.NewWriterSize(d, delivered)
	err := run(to)
	if err == nil {
		err = to.Flush()
	}
	switch {
	case err == nil:
		d.begin() // even for an empty file
		w.Header().Set(trailerEnd, "whole")
	case d.begun:
		w.Header().Set(trailerError, fmt.Sprintf("%d %s", statusOf(err), url.PathEscape(err.Error())))
	default:
		fail(w, err)
	}
}

// delivery is an answer whose header is sent with its first byte.
type delivery struct {
	w     http.ResponseWriter
	out   *http.ResponseController
	begun bool
}

func (d *delivery) begin() {
	if d.begun {
		return
	}
	d.begun = true
	h := d.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Trailer", trailerEnd)
	h.Add("Trailer", trailerError)
	d.w.WriteHeader(http.StatusOK)
}

func (d *delivery) Write(p []byte) (int, error) {
	d.begin()
	// If deadlines are not supported, the end of the request still ends this.
	_ = d.out.SetWriteDeadline(time.Now().Add(streamTimeout))
	return d.w.Write(p)
}
