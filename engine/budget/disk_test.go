package budget

import (
	"errors"
	"os"
	"testing"
)

func TestDisk(t *testing.T) {
	if free, _, err := Disk(t.TempDir()); err != nil || free == 0 {
		t.Errorf("%d bytes, %v", free, err)
	}
	if _, _, err := Disk("/nowhere/at/all"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// Linux has this folder in memory.
	if _, err := os.Stat("/dev/shm"); err == nil {
		if _, memory, err := Disk("/dev/shm"); err != nil || !memory {
			t.Errorf("/dev/shm: %v, %v", memory, err)
		}
	}
}
