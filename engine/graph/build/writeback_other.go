//go:build !linux

package build

import (
	"errors"
	"os"
)

// punch does nothing: the system can't.
func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

// startWriting does nothing: the system has no such hint.
func startWriting(*os.File, int64, int) {}
