package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

func jobPath(id, verb string) string {
	path := "/v1/jobs/" + url.PathEscape(id)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// StartJob adds a job to the queue, after the node has checked it.
func (c *Client) StartJob(ctx context.Context, r TrainRequest) (id JobID, err error) {
	return id, c.call(ctx, changeTimeout, http.MethodPost, "/v1/jobs", r, &id)
}

// Jobs lists all jobs.
func (c *Client) Jobs(ctx context.Context) (list []JobSummary, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/jobs", nil, &list)
}

// Job shows one job, with all its epochs.
func (c *Client) Job(ctx context.Context, id string) (j Job, err error) {
	return j, c.call(ctx, readTimeout, http.MethodGet, jobPath(id, ""), nil, &j)
}

// WatchJob calls tell in this goroutine with each event of a job until it ends, and
// returns the job. If ctx ends first, the job goes on.
func (c *Client) WatchJob(ctx context.Context, id string, tell func(JobEvent)) (Job, error) {
	const hint = "`hopmesh train list` shows what became of the jobs"
	last, err := operate(ctx, c, http.MethodGet, jobPath(id, "watch"), nil, hint, tell)
	if err != nil {
		return Job{}, err
	}
	return *last.End, nil
}

// StopJob stops a job. It does not change one that has ended.
func (c *Client) StopJob(ctx context.Context, id string) error {
	return c.call(ctx, changeTimeout, http.MethodPost, jobPath(id, "stop"), nil, nil)
}

// ResumeJob resumes a job that has failed or was stopped.
func (c *Client) ResumeJob(ctx context.Context, id string, r ResumeRequest) error {
	return c.call(ctx, changeTimeout, http.MethodPost, jobPath(id, "resume"), r, nil)
}

// RemoveJob removes a job that has ended, with its model.
func (c *Client) RemoveJob(ctx context.Context, id string) error {
	return c.call(ctx, changeTimeout, http.MethodDelete, jobPath(id, ""), nil, nil)
}

// Predict writes the predictions of a job's model for every vertex of a dataset. If it fails, some may
// have been written.
func (c *Client) Predict(ctx context.Context, id string, r PredictRequest, to io.Writer) error {
	return c.fetch(ctx, jobPath(id, "predict"), r, to, nil)
}

// Evaluate compares a job's model with a dataset.
func (c *Client) Evaluate(ctx context.Context, id string, r EvaluateRequest) (Evaluation, error) {
	last, err := operate(ctx, c, http.MethodPost, jobPath(id, "evaluate"), r, "ask again", func(EvaluationEvent) {})
	if err != nil {
		return Evaluation{}, err
	}
	return *last.End, nil
}

// ExportJob writes a job's model.
func (c *Client) ExportJob(ctx context.Context, id string, r ExportRequest, to io.Writer) error {
	return c.fetch(ctx, jobPath(id, "export"), r, to, nil)
}

// fetch reads a file. Only a trailer shows whether it is complete, or the error that cut
// it off. begin, which may be nil, is called with the header before the file is read.
func (c *Client) fetch(ctx context.Context, path string, in any, to io.Writer, begin func(http.Header) error) error {
	res, err := c.send(ctx, http.MethodPost, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if begin != nil {
		if err := begin(res.Header); err != nil {
			return err
		}
	}
	from := &reader{from: res.Body}
	if _, err := io.Copy(to, from); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if from.err == nil {
			return err // the writer's own error
		}
		return fmt.Errorf("%w: %w", c.gone("before the file was whole"), err)
	}
	if res.Trailer.Get(trailerEnd) != "" {
		return nil
	}
	status, text, _ := strings.Cut(res.Trailer.Get(trailerError), " ")
	code, err := strconv.Atoi(status)
	sentence, unescaped := url.PathUnescape(text)
	if err != nil || unescaped != nil {
		return c.gone("before the file was whole")
	}
	return &Error{Status: code, Message: sentence}
}

// reader remembers the error of reading.
type reader struct {
	from io.Reader
	err  error
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// RunScript runs a script beside nodes. Only ctx bounds it.
func (c *Client) RunScript(ctx context.Context, r RunRequest, tell func(RunEvent)) (RunDone, error) {
	const hint = "if other nodes live, `hopmesh run --addr ADDR --run WORD` with the word of this run goes on from the last checkpoint"
	last, err := operate(ctx, c, http.MethodPost, "/v1/runs", r, hint, tell)
	if err != nil {
		return RunDone{}, err
	}
	return *last.Done, nil
}
