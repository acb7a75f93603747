package vicinity

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inChild is set in the process that TestFullDisk begins, whose files may not grow.
const inChild = "HOPMESH_VICINITY_FULL"

// What can't be written whole is an error in one line, and nothing of it is ever mapped:
// reading it would end the process. With room again, all comes.
func TestFullDisk(t *testing.T) {
	if os.Getenv(inChild) != "" {
		underLimit(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	child.Env = append(os.Environ(), inChild+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
		t.Errorf("%v: %s", err, out)
	}
}

func underLimit(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // so that a write fails as on a full disk, after a part of it
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(bytes uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	says := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, unix.EFBIG) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "free some space in the folder of the job") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	shards := shardsOf(kind{weighted: true}, 90, 70, 80)
	_, all := sourcesOf(t, shards, 2, []int{0, 1, 1})
	vertices, _ := rangeOf(shards, 1, 2)
	in := vaultOf(t, true)
	for _, bytes := range []uint64{0, 100, 300, 1000} {
		limit(bytes)
		e, err := all[0].Edges(t.Context(), in, vertices, nil, nil)
		says("edges", err)
		for _, v := range vertices { // none of them lies beyond the end of a file
			_, _, _, _ = e.Row(v)
		}
		_, err = all[0].Rows(t.Context(), in, vertices, nil, nil)
		says("rows", err)
		_, err = Keep(in, make([]int64, pending))
		says("a long array", err)
	}
	limit(was.Cur)
	e, err := all[0].Edges(t.Context(), in, vertices, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vertices {
		want, _ := (&Source{}).rowOf(all[1].shard(v), v)
		if got, _, _, ok := e.Row(v); !ok || !slices.Equal(got, want) {
			t.Fatalf("vertex %d has %v, not %v", v, got, want)
		}
	}
	if _, err := all[0].Rows(t.Context(), in, vertices, nil, nil); err != nil {
		t.Error(err)
	}
}
