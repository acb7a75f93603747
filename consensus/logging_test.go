package consensus

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestRaftLogsThroughSlog(t *testing.T) {
	var out strings.Builder
	l := newLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	l.Trace("nobody reads this")
	l.Debug("nor this")
	l.Info("servers", "list", hclog.Fmt("%d of %s", 3, "five"))
	l.With("peer", "b").Warn("slow")
	l.Named("wal").Error("full", "err", errors.New("no space"))
	want := `level=INFO msg="raft: servers" list="3 of five"
level=WARN msg="raft: slow" peer=b
level=ERROR msg="raft: full" err="no space" part=wal
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
