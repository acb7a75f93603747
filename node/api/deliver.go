package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// How a file that is sent piece by piece ends: the one trailer says that it is
// whole, the other holds a status and a sentence, escaped, that says why not.
const (
	trailerEnd   = "Hopmesh-End"
	trailerError = "Hopmesh-Error"
)

// delivered is how much of a file is gathered before it is sent.
const delivered = 64 << 10

// deliver answers with what run writes. What run refuses before it has written
// much is refused as any request is.
func deliver(w http.ResponseWriter, run func(io.Writer) error) {
	d := &delivery{w: w, out: http.NewResponseController(w)}
	to := bufio.NewWriterSize(d, delivered)
	err := run(to)
	if err == nil {
		err = to.Flush()
	}
	switch {
	case err == nil:
		d.begin() // of a file without a byte, too
		w.Header().Set(trailerEnd, "whole")
	case d.begun:
		w.Header().Set(trailerError, fmt.Sprintf("%d %s", statusOf(err), url.PathEscape(err.Error())))
	default:
		fail(w, err)
	}
}

// delivery is an answer that begins with its first byte.
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
	// Where deadlines are not supported, the end of the request still ends this.
	_ = d.out.SetWriteDeadline(time.Now().Add(streamTimeout))
	return d.w.Write(p)
}
