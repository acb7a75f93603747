package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// silence is how long a daemon may send nothing during an operation. It is many times the
// interval between two keep-alive lines.
const silence = time.Minute

// line is one line of an operation's stream, as a client reads it.
type line interface {
	// ends reports whether the line is the last of a stream. failure is the error, if
	// any, with which the operation ended.
	ends() (last bool, failure *ErrorBody)
	// tells reports whether the line is not empty.
	tells() bool
}

func (e DatasetEvent) ends() (bool, *ErrorBody) {
	return e.Dataset != nil || e.Done != nil, e.Error
}

func (e DatasetEvent) tells() bool { return e.Progress != nil || e.Forecast != nil || e.Note != "" }

func (e JobEvent) ends() (bool, *ErrorBody) { return e.End != nil, e.Error }

func (e JobEvent) tells() bool {
	return e.State != nil || e.Progress != nil || e.Epoch != nil || e.Note != ""
}

func (e EvaluationEvent) ends() (bool, *ErrorBody) { return e.End != nil, e.Error }

func (EvaluationEvent) tells() bool { return false }

// operate starts a long operation, calls tell with its events, and returns the last line
// if the operation succeeded. hint is the advice for when the daemon goes away.
func operate[E line](ctx context.Context, c *Client, method, path string, in any, hint string, tell func(E)) (E, error) {
	var none E
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(silence, func() {
		cancel(fmt.Errorf("the daemon at %s has said nothing for %s, so this command waits no longer", c.addr, silence))
	})
	defer patience.Stop()
	body, err := c.open(ctx, method, path, in)
	if err != nil {
		return none, err
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body}
	lines := json.NewDecoder(limited)
	for {
		patience.Reset(silence)
		limited.N = maxAnswer // limits each line, as in follow
		var e E
		if err := lines.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return none, context.Cause(ctx)
			}
			return none, c.cut(hint, err)
		}
		patience.Stop() // the time that tell takes is not the daemon's
		last, failure := e.ends()
		switch {
		case failure != nil:
			return none, &Error{Status: failure.Status, Message: failure.Error}
		case last:
			return e, nil
		case e.tells():
			tell(e)
		}
	}
}

// cut returns an error for a stream that ended before the operation did.
func (c *Client) cut(hint string, err error) error {
	const why = "the daemon at %s went away before it was done; %s"
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf(why, c.addr, hint)
	}
	return fmt.Errorf(why+": %w", c.addr, hint, err)
}
