package read

import (
	"context"
	"errors"
	"io"
)

// eachLine yields the lines that hold something. They are valid until yield
// returns.
func eachLine(ctx context.Context, l *lineReader, yield func(line uint64, text []byte) error) error {
	for {
		switch err := l.fill(ctx); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		all := l.cur
		for len(l.cur) > 0 {
			text, n := cutLine(l.cur)
			if len(text) > l.most {
				return l.explain(errLongLine)
			}
			if len(trim(text)) > 0 {
				if err := yield(l.line, text); err != nil {
					return err
				}
			}
			l.cur = l.cur[n:]
			l.line++
		}
		l.release(all)
	}
}
