package node

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hopmesh/hopmesh/node/api"
)

// logTee sends every record on to the node's own log and, whatever that one's
// level, to whoever runs `hopmesh monitor`.
type logTee struct {
	next  slog.Handler
	lines *hub[leveled]
	attrs []slog.Attr
}

type leveled struct {
	level slog.Level
	line  api.LogLine
}

func (t *logTee) Enabled(ctx context.Context, l slog.Level) bool {
	return t.next.Enabled(ctx, l) || t.lines.heard()
}

func (t *logTee) Handle(ctx context.Context, r slog.Record) error {
	if t.lines.heard() {
		line := api.LogLine{Time: r.Time, Level: r.Level.String(), Message: r.Message, Attrs: map[string]string{}}
		for _, a := range t.attrs {
			line.Attrs[a.Key] = a.Value.String()
		}
		r.Attrs(func(a slog.Attr) bool {
			line.Attrs[a.Key] = a.Value.String()
			return true
		})
		t.lines.send(leveled{r.Level, line})
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

func (t *logTee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logTee{next: t.next.WithAttrs(attrs), lines: t.lines, attrs: slices.Concat(t.attrs, attrs)}
}

// WithGroup is only passed on: nothing in the program groups its attributes.
func (t *logTee) WithGroup(name string) slog.Handler {
	return &logTee{next: t.next.WithGroup(name), lines: t.lines, attrs: t.attrs}
}

// heard says whether anybody listens.
func (h *hub[T]) heard() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners) > 0
}
