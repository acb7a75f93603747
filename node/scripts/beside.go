package scripts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// Codes that a script of the Python package ends by.
const (
	codeAgain = 75 // its job goes on elsewhere: it is to be started again
	codeGone  = 69 // its daemon went away
)

const (
	// mostLine bounds a line of output. Longer ones are cut into several.
	mostLine = 16 << 10
	// mostHeld bounds the output that is kept for whoever asks. A script that writes more waits.
	mostHeld = 256 << 10
	// mostSent bounds the output in one answer, which JSON may make six times longer.
	mostSent = 128 << 10
	// perLine is what a line counts besides its text.
	perLine = 16
)

var (
	errForsaken = errors.New("nobody asks for the script's output any more")
	errEnded    = errors.New("the run has ended")
	errTaken    = errors.New("another request runs the script")
)

// held is a script beside this node.
type held struct {
	begin
	cancel context.CancelCauseFunc
	lease  *time.Timer
	taken  atomic.Bool   // another request has it started anew
	ended  chan struct{} // closed when nothing of it runs

	mu      sync.Mutex
	changed chan struct{} // closed when what follows changes
	lines   []line        // that have not arrived
	first   int           // the number of the first of them
	bytes   int
	over    bool
	code    int
	last    string
}

func (s *Scripts) onStart(_ context.Context, _ string, body []byte) ([]byte, error) {
	b, err := readBegin(body)
	if err != nil {
		return nil, err
	}
	if s.Python == "" {
		return nil, refused("it runs no scripts: start its agent with --python PROGRAM, such as --python python3")
	}
	if b.Later && !s.goesOn(b.Word) {
		return json.Marshal(begun{Apart: true})
	}
	// The script outlives this call.
	ctx, done, err := s.underWay.Begin(context.Background())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h := &held{begin: b, cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{})}
	h.lease = time.AfterFunc(lease, func() { cancel(errForsaken) })
	s.mu.Lock()
	before := s.held[b.Word]
	if before != nil && b.Later && before.Asker != b.Asker { // of the user's newest request
		s.mu.Unlock()
		h.lease.Stop()
		cancel(nil)
		done()
		return json.Marshal(begun{Apart: true})
	}
	s.held[b.Word] = h
	s.mu.Unlock()
	if before != nil {
		before.taken.Store(before.Asker != b.Asker)
		before.cancel(errEnded)
		<-before.ended
	}
	go func() {
		defer done()
		defer close(h.ended)
		s.keep(ctx, h)
		// Whoever asks learns how it has ended; a script that nobody asks for is forgotten.
		if ctx.Err() == nil {
			<-ctx.Done()
		}
		h.lease.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[b.Word] == h {
			delete(s.held, b.Word)
		}
	}()
	return json.Marshal(begun{})
}

// find returns the script of a run, if it is of this asker.
func (s *Scripts) find(l look) (*held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[l.Run]
	if h != nil && h.Asker != l.Asker {
		return nil, takenOver(l.Run)
	}
	if h == nil {
		return nil, refused("it has no script of the run %s any more", l.Run)
	}
	return h, nil
}

func (s *Scripts) onLook(ctx context.Context, _ string, body []byte) ([]byte, error) {
	l, err := readLook(body)
	if err != nil {
		return nil, err
	}
	h, err := s.find(l)
	if err != nil {
		return nil, err
	}
	h.lease.Reset(lease)
	if l.Keep {
		return json.Marshal(report{})
	}
	late := time.NewTimer(glance)
	defer late.Stop()
	for {
		r, changed := h.report(l.From)
		if h.taken.Load() { // so that it was ended is no failure
			return nil, takenOver(l.Run)
		}
		if len(r.Lines) > 0 || r.Over {
			return json.Marshal(r)
		}
		select {
		case <-changed:
		case <-late.C:
			return json.Marshal(r)
		case <-h.ended:
			if h.taken.Load() {
				return nil, takenOver(l.Run)
			}
			return nil, refused("it has ended its script of the run %s", l.Run)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Scripts) onEnd(_ context.Context, _ string, body []byte) ([]byte, error) {
	l, err := readLook(body)
	if err != nil {
		return nil, err
	}
	if h, err := s.find(l); err == nil {
		h.cancel(errEnded)
		<-h.ended
	}
	return []byte("{}"), nil
}

// keep runs the script until it has ended for good.
func (s *Scripts) keep(ctx context.Context, h *held) {
	folder := filepath.Join(s.Dir, h.Word)
	// A folder that can't be removed now is removed at the next start.
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, h.Name)
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(h.Script), 0o600)
	}
	environment := s.environment(h)
	wait := pause
	for err == nil {
		began := time.Now()
		output := &Lines{ctx: ctx, to: h}
		var code int
		if code, err = s.Launch(ctx, folder, slices.Concat([]string{s.Python, file}, h.Args), environment, output); err != nil {
			break
		}
		output.Close()
		over, done := s.course(h.Word)
		switch {
		case ctx.Err() != nil, code == 0, code == codeAgain && over && done:
			if ctx.Err() == nil && code == codeAgain {
				code = 0
			}
			h.end(code)
			return
		case code != codeAgain && code != codeGone:
			h.end(code)
			return
		}
		if time.Since(began) >= steady {
			wait = pause
		}
		note := "starts again from the last checkpoint"
		if wait > pause {
			note += fmt.Sprintf(" in %s, as it ended with exit code %d soon after it had begun, again", wait, code)
		}
		h.add(ctx, line{Text: note, Note: true})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, longest)
	}
	h.add(ctx, line{Text: fmt.Sprintf("the script can't be run: %v", err)})
	h.end(1)
}

// environment returns that of the script: what programs need of this process's, and what the script
// needs of its run.
func (s *Scripts) environment(h *held) []string {
	return append(passed(os.Environ()),
		"PYTHONUNBUFFERED=1", "HOPMESH_API="+s.Socket, "HOPMESH_RUN="+h.Word,
		fmt.Sprintf("HOPMESH_RANK=%d", h.Rank), fmt.Sprintf("HOPMESH_SIZE=%d", h.Size))
}

// course reports whether a run has jobs and all of them are over, and whether all have ended well.
func (s *Scripts) course(run string) (over, done bool) {
	over, done = true, true
	n := 0
	for _, j := range s.Jobs() {
		if ofRun(j.Run, run) {
			n, over, done = n+1, over && j.Over, done && j.Done
		}
	}
	return n > 0 && over, n > 0 && done
}

// goesOn reports whether this node knows a job of the run that is not over.
func (s *Scripts) goesOn(run string) bool {
	return slices.ContainsFunc(s.Jobs(), func(j Job) bool { return ofRun(j.Run, run) && !j.Over })
}

// ofRun reports whether a job's word is that of a run, or of another loader in it.
func ofRun(job, run string) bool {
	number, further := strings.CutPrefix(job, run+"--")
	return job == run || further && number != "" && strings.Trim(number, "0123456789") == ""
}

// alter changes what is reported.
func (h *held) alter(do func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *held) end(code int) { h.alter(func() { h.over, h.code = true, code }) }

// add appends a line, once there is room for it.
func (h *held) add(ctx context.Context, l line) {
	for {
		h.mu.Lock()
		full, changed := h.bytes > mostHeld, h.changed
		h.mu.Unlock()
		if !full {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
	h.alter(func() {
		h.lines, h.bytes = append(h.lines, l), h.bytes+len(l.Text)+perLine
		if t := strings.TrimSpace(l.Text); t != "" && !l.Note {
			h.last = t
		}
	})
}

// report returns the lines from a number on, and forgets those before it.
func (h *held) report(from int) (r report, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	arrived := max(0, min(from-h.first, len(h.lines)))
	for _, l := range h.lines[:arrived] {
		h.bytes -= len(l.Text) + perLine
	}
	h.lines, h.first = slices.Delete(h.lines, 0, arrived), h.first+arrived
	if arrived > 0 {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	sent := 0
	for _, l := range h.lines {
		if sent += len(l.Text) + perLine; len(r.Lines) > 0 && sent > mostSent {
			break
		}
		r.Lines = append(r.Lines, l)
	}
	if h.over && len(h.lines) == 0 {
		r.Over, r.Code, r.Last = true, h.code, h.last
	}
	return r, h.changed
}

// Lines takes output and cuts it into lines. One goroutine at a time writes.
type Lines struct {
	ctx  context.Context
	to   *held
	rest []byte
}

// Write implements io.Writer.
func (w *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := slices.Index(p, '\n')
		end := i
		if i < 0 {
			end = len(p)
		}
		if room := mostLine - len(w.rest); end > room {
			w.rest = append(w.rest, p[:room]...)
			p = p[room:]
			w.flush()
			continue
		}
		w.rest = append(w.rest, p[:end]...)
		if i < 0 {
			break
		}
		p = p[i+1:]
		w.flush()
	}
	return n, nil
}

// Close ends the last line.
func (w *Lines) Close() {
	if len(w.rest) > 0 {
		w.flush()
	}
}

func (w *Lines) flush() {
	text := strings.TrimSuffix(string(w.rest), "\r")
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	w.rest = w.rest[:0]
	w.to.add(w.ctx, line{Text: text})
}
