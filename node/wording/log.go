package wording

import (
	"context"
	"log/slog"
	"slices"
)

// Handler returns a handler that words the errors and texts of records before next gets them.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ next slog.Handler }

func (h handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	words := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		words.AddAttrs(attr(a))
		return true
	})
	return h.next.Handle(ctx, words)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i, a := range attrs {
		attrs[i] = attr(a)
	}
	return handler{h.next.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.next.WithGroup(name)} }

func attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(Text(v))
	case error:
		a.Value = slog.AnyValue(Error(v))
	}
	return a
}
