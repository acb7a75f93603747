// Package events passes what happens on a node, log records among it, to those that watch. A
// slow watcher loses events and holds nobody up.
package events

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/hopmesh/hopmesh/node/api"
)

// Hub passes values to whoever listens. A slow listener loses values; the
// sender never waits.
type Hub[T any] struct {
	mu        sync.Mutex
	listeners map[chan T]struct{}
}

// Send passes a value on.
func (h *Hub[T]) Send(v T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		select {
		case c <- v:
		default:
		}
	}
}

// Listen returns a channel that is closed when ctx ends.
func (h *Hub[T]) Listen(ctx context.Context) <-chan T {
	c := make(chan T, 256)
	h.mu.Lock()
	if h.listeners == nil {
		h.listeners = map[chan T]struct{}{}
	}
	h.listeners[c] = struct{}{}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners, c)
		close(c)
	})
	return c
}

// heard reports whether anybody listens.
func (h *Hub[T]) heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners) > 0
}

// Tee returns a logger whose records also go to lines, whatever the level of next.
func Tee(next slog.Handler, lines *Hub[Line]) *slog.Logger {
	return slog.New(&tee{next: next, lines: lines})
}

// tee sends every record on to the node's own log and, whatever that one's
// level, to whoever runs `hopmesh monitor`.
type tee struct {
	next  slog.Handler
	lines *Hub[Line]
	attrs []slog.Attr
}

// Line is a record of the log, as watchers get it.
type Line struct {
	Level slog.Level
	Line  api.LogLine
}

func (t *tee) Enabled(ctx context.Context, l slog.Level) bool {
	return t.next.Enabled(ctx, l) || t.lines.heard()
}

func (t *tee) Handle(ctx context.Context, r slog.Record) error {
	if t.lines.heard() {
		line := api.LogLine{Time: r.Time, Level: r.Level.String(), Message: r.Message, Attrs: map[string]string{}}
		for _, a := range t.attrs {
			line.Attrs[a.Key] = a.Value.String()
		}
		r.Attrs(func(a slog.Attr) bool {
			line.Attrs[a.Key] = a.Value.String()
			return true
		})
		t.lines.Send(Line{r.Level, line})
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

func (t *tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tee{next: t.next.WithAttrs(attrs), lines: t.lines, attrs: slices.Concat(t.attrs, attrs)}
}

// WithGroup is only passed on: nothing in the program groups its attributes.
func (t *tee) WithGroup(name string) slog.Handler {
	return &tee{next: t.next.WithGroup(name), lines: t.lines, attrs: t.attrs}
}
