package transport

import "testing"

func TestFsync(t *testing.T) {
	if took, err := fsync(t.TempDir()); err != nil || took <= 0 {
		t.Errorf("%s, %v", took, err)
	}
}
