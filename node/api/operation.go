package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// keepAlive is how often an operation without news sends a line, so that each end notices
// when the other is gone.
const keepAlive = 2 * time.Second

var errReaderGone = errors.New("the client went away")

// event is one line of an operation's stream.
type event[E any] interface {
	// lasting reports whether the event may be sent again when there is no news.
	lasting() bool
	// failed returns the event that ends the stream with an error.
	failed(ErrorBody) E
}

func (e DatasetEvent) lasting() bool                       { return e.Progress != nil }
func (DatasetEvent) failed(b ErrorBody) DatasetEvent       { return DatasetEvent{Error: &b} }
func (e JobEvent) lasting() bool                           { return e.Progress != nil }
func (JobEvent) failed(b ErrorBody) JobEvent               { return JobEvent{Error: &b} }
func (EvaluationEvent) lasting() bool                      { return false }
func (EvaluationEvent) failed(b ErrorBody) EvaluationEvent { return EvaluationEvent{Error: &b} }

// answerOperation answers a request with a stream of the events of run, and of how it
// ends. If run fails before its first event, the error is the answer, as for any other
// request. The context of run ends when the client disconnects.
func answerOperation[E event[E]](w http.ResponseWriter, r *http.Request, run func(context.Context, func(E)) (E, error)) {
	ctx, cancel := context.WithCancelCause(r.Context())
	o := operation[E]{w: w, out: http.NewResponseController(w), lines: json.NewEncoder(w), cancel: cancel}
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		again := time.NewTicker(keepAlive)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				o.remind()
			case <-ctx.Done():
				return
			}
		}
	}()
	last, err := run(ctx, o.tell)
	cancel(nil)
	<-alive
	if err != nil {
		if !o.begun {
			fail(w, err)
			return
		}
		last = last.failed(ErrorBody{Status: statusOf(err), Error: err.Error()})
	}
	o.tell(last)
}

// operation is a stream whose header is sent with its first line.
type operation[E event[E]] struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	lines  *json.Encoder
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	begun  bool
	gone   bool // the client does not read any more
	quiet  bool // nothing was sent since the last reminder
	latest E
}

func (o *operation[E]) tell(e E) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.lasting() {
		o.latest = e
	}
	o.quiet = false
	o.send(e)
}

// remind sends the latest progress again if nothing was sent for a while.
func (o *operation[E]) remind() {
	if !o.mu.TryLock() {
		return // something is being sent
	}
	defer o.mu.Unlock()
	if o.quiet {
		o.send(o.latest)
	}
	o.quiet = true
}

// send is called with mu held.
func (o *operation[E]) send(e E) {
	if o.gone {
		return
	}
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", "application/x-ndjson")
		o.w.WriteHeader(http.StatusOK)
	}
	// If deadlines are not supported, the end of the request still ends this.
	_ = o.out.SetWriteDeadline(time.Now().Add(streamTimeout))
	if o.lines.Encode(e) != nil || o.out.Flush() != nil {
		o.gone = true
		o.cancel(errReaderGone)
	}
}
