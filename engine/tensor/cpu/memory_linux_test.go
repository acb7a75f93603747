package cpu_test

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// What an arena takes is there before a step needs it, all of it.
func TestArenaIsTouched(t *testing.T) {
	const bytes, page = 24 << 20, 4 << 10
	for _, threads := range []int{1, 2, 5} {
		d := cpu.New(threads)
		a, err := d.NewArena(bytes)
		if err != nil {
			t.Fatal(err)
		}
		m := a.Alloc(tensor.F32, bytes/4, 1)
		there := make([]byte, bytes/page)
		if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(m.Base()), bytes, uintptr(unsafe.Pointer(&there[0]))); errno != 0 {
			t.Fatal(errno)
		}
		missing := 0
		for _, p := range there {
			missing += 1 - int(p&1)
		}
		if missing > 0 {
			t.Errorf("%d threads: %d of %d pages were never touched", threads, missing, len(there))
		}
		a.Close()
		d.Close()
	}
}
