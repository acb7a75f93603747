package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// silence is how long a daemon may say nothing during an operation: many times
// what lies between two of its lines.
const silence = time.Minute

// ImportDataset has the node import a graph, and tells what it is doing: tell is
// called in this goroutine with all that is not the end. It ends with ctx, and
// with it the import.
func (c *Client) ImportDataset(ctx context.Context, r ImportRequest, tell func(DatasetEvent)) (Dataset, error) {
	return c.make(ctx, "/v1/datasets/import", r, tell)
}

// GenerateDataset has the node make a graph up, as ImportDataset does.
func (c *Client) GenerateDataset(ctx context.Context, r GenerateRequest, tell func(DatasetEvent)) (Dataset, error) {
	return c.make(ctx, "/v1/datasets/generate", r, tell)
}

func (c *Client) make(ctx context.Context, path string, in any, tell func(DatasetEvent)) (Dataset, error) {
	last, err := c.operate(ctx, path, in, tell)
	if err != nil {
		return Dataset{}, err
	}
	if last.Dataset == nil {
		return Dataset{}, c.cut(nil)
	}
	return *last.Dataset, nil
}

// Datasets lists the datasets of the mesh.
func (c *Client) Datasets(ctx context.Context) (list []DatasetSummary, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/datasets", nil, &list)
}

// Dataset describes one dataset.
func (c *Client) Dataset(ctx context.Context, name string) (d Dataset, err error) {
	return d, c.call(ctx, readTimeout, http.MethodGet, "/v1/datasets/"+url.PathEscape(name), nil, &d)
}

// VerifyDataset has every copy of every shard read through.
func (c *Client) VerifyDataset(ctx context.Context, name string, tell func(DatasetEvent)) error {
	_, err := c.operate(ctx, "/v1/datasets/"+url.PathEscape(name)+"/verify", nil, tell)
	return err
}

// RemoveDataset removes a dataset from the mesh.
func (c *Client) RemoveDataset(ctx context.Context, name string) error {
	return c.call(ctx, changeTimeout, http.MethodDelete, "/v1/datasets/"+url.PathEscape(name), nil, nil)
}

// operate asks for something that takes its time, tells what comes, and returns
// the line that ended it well.
func (c *Client) operate(ctx context.Context, path string, in any, tell func(DatasetEvent)) (DatasetEvent, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(silence, func() {
		cancel(fmt.Errorf("the daemon at %s has said nothing for %s, so this command waits no longer", c.addr, silence))
	})
	defer patience.Stop()
	body, err := c.open(ctx, http.MethodPost, path, in)
	if err != nil {
		return DatasetEvent{}, err
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body}
	lines := json.NewDecoder(limited)
	for {
		limited.N = maxAnswer // bounds each line, as in follow
		var e DatasetEvent
		if err := lines.Decode(&e); err != nil {
			if ctx.Err() != nil {
				return e, context.Cause(ctx)
			}
			return e, c.cut(err)
		}
		patience.Reset(silence)
		switch {
		case e.Error != nil:
			return e, &Error{Status: e.Error.Status, Message: e.Error.Error}
		case e.Dataset != nil, e.Done != nil:
			return e, nil
		case e.Progress != nil, e.Forecast != nil, e.Note != "":
			tell(e)
		}
	}
}

// cut says that a stream ended before what it was for was done.
func (c *Client) cut(err error) error {
	const why = "the daemon at %s went away before it was done; `hopmesh dataset list` shows what the mesh holds"
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf(why, c.addr)
	}
	return fmt.Errorf(why+": %w", c.addr, err)
}
