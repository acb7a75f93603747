package consensus

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger returns a logger for Raft that writes to log. Levels are kept; Raft's trace
// level maps below debug.
func newLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off})
	l.RegisterSink(sink{log})
	return l
}

// sink forwards hclog's records to slog.
type sink struct{ log *slog.Logger }

var _ hclog.SinkAdapter = sink{}

// Accept may be called from any of Raft's goroutines.
func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slogLevel(level)
	ctx := context.Background()
	if !s.log.Enabled(ctx, to) {
		return
	}
	for i, a := range args {
		// An hclog.Format holds printf arguments; format them only if the record is
		// read.
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	if name != "" {
		args = append(args, "part", name)
	}
	s.log.Log(ctx, to, "raft: "+msg, args...) //nolint:sloglint // the message is Raft's
}

func slogLevel(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Info, hclog.NoLevel:
		return slog.LevelInfo
	case hclog.Trace:
		return slog.LevelDebug - 4
	}
	return slog.LevelDebug
}
