package data

import (
	"runtime"
	"testing"
)

// A process with one processor has two threads while it makes shards of any dataset, and no
// longer.
func TestAnswerMeanwhile(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	want := func(n int) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != n {
			t.Errorf("%d threads, want %d", got, n)
		}
	}
	first, second := answerMeanwhile(), answerMeanwhile()
	want(2)
	first()
	first() // a stage may be closed twice
	want(2)
	second()
	want(1)
	runtime.GOMAXPROCS(3)
	third := answerMeanwhile()
	want(3)
	third()
	want(3)
}
