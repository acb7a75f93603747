package consensus

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newLogger gives Raft a logger that writes to log. Levels are kept; what Raft
// calls trace is below debug.
func newLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off})
	l.RegisterSink(sink{log})
	return l
}

// sink writes what hclog would have written.
type sink struct{ log *slog.Logger }

var _ hclog.SinkAdapter = sink{}

// Accept is called from any of Raft's goroutines.
func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to := slogLevel(level)
	ctx := context.Background()
	if !s.log.Enabled(ctx, to) {
		return
	}
	for i, a := range args {
		// A Format is printf's arguments, to be printed only if somebody reads it.
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
