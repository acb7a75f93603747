package train

import (
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/node/api"
)

func TestWatchInLines(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := clitest.Then
	v.live.Now = func() time.Time { return now }
	state := clitest.Jobs()[1]
	v.show(api.JobEvent{State: &state})
	for n := range 12 { // an epoch a second: a line every five
		e := clitest.Epoch(n + 4)
		now = now.Add(time.Second)
		v.show(api.JobEvent{Progress: &api.JobProgress{Epoch: n + 4, Step: 1, Steps: 9}})
		v.show(api.JobEvent{Epoch: &e})
	}
	long := clitest.Epoch(16)
	long.Seconds = 60
	v.show(api.JobEvent{Epoch: &long})
	now = now.Add(6 * time.Second)
	v.show(api.JobEvent{Progress: &api.JobProgress{Epoch: 17, Step: 3, Steps: 9}})
	const want = "Job j8 trains sage on products?[2J on beta, 20 epochs.\n" +
		"epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch\n" +
		"epoch 14 of 20: loss 0.1071, validation 79.0 %, 2.1ms an epoch\n" +
		"epoch 16 of 20, step 3 of 9 of the next: loss 0.0938, validation 79.0 %, 1m0s an epoch\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// For nodes that share the work, it prints where the time goes and what is sent.
func TestWatchWhatIsShared(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out strings.Builder
		v := newView(&out, false)
		now := clitest.Then
		v.live.Now, v.live.Terminal = func() time.Time { return now }, terminal
		state := clitest.SharedJobs()[1]
		state.Epoch = 1
		v.show(api.JobEvent{State: &state})
		for n := range 3 {
			e := clitest.SharedEpoch(n + 2)
			v.show(api.JobEvent{Epoch: &e})
			v.show(api.JobEvent{Progress: &api.JobProgress{Epoch: n + 3, EpochsTotal: 20, Step: 1, Steps: 1000}})
			now = now.Add(6 * time.Second)
		}
		state.Nodes = make([]string, 6)
		v.show(api.JobEvent{State: &state})
		one := clitest.Epoch(9)
		one.Rows.Remote = 1
		state.Nodes = []string{"beta"}
		v.show(api.JobEvent{State: &state})
		v.show(api.JobEvent{Epoch: &one})
		now = now.Add(6 * time.Second)
		one.Rows.Remote = 0
		v.show(api.JobEvent{Epoch: &one})
		const phases = " (sampling 500ms, gathering 3.25s, computing 6.13s, reducing 1.5s, waiting 970.6ms), 1.3 GiB sent\n"
		want := "Job j8 trains sage on products?[2J on alpha, beta?[2J and gamma, 20 epochs.\n" +
			"epoch 3 of 20: loss 0.5000, validation 79.0 %, 12.35s an epoch" + phases +
			"epoch 4 of 20: loss 0.3750, validation 79.0 %, 12.35s an epoch" + phases +
			"Job j8 trains sage on products?[2J on 6 nodes, 20 epochs.\n" +
			"Job j8 trains sage on products?[2J on beta, 20 epochs.\n" +
			"epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch (gathering 400µs, computing 1.5ms, waiting 1.2s), 0 B sent\n"
		if !terminal {
			want += "epoch 9 of 20: loss 0.1667, validation 79.0 %, 2.1ms an epoch\n"
		}
		var lines strings.Builder
		for line := range strings.Lines(out.String()) {
			lines.WriteString(strings.TrimPrefix(line[strings.LastIndex(line, "\r")+1:], "\x1b[K")) // without the bar
		}
		got, bar := lines.String(), strings.Contains(out.String(), "█")
		if terminal {
			got = got[:strings.LastIndex(got, "\n")+1]
		}
		if got != want || bar != terminal {
			t.Errorf("%q, a bar: %v", got, bar)
		}
	}
}

func TestWatchOnATerminal(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	v.live.Terminal = true
	state := clitest.Jobs()[1]
	v.show(api.JobEvent{State: &state})
	e := clitest.Epoch(10)
	v.show(api.JobEvent{Epoch: &e})
	if !strings.Contains(out.String(), "epoch 10 of 20: loss 0.1500, validation 79.0 %") || !strings.Contains(out.String(), "\r\x1b[K████████████░░░░░░░░░░░░ epoch 10") {
		t.Errorf("%q", out.String())
	}
	v.show(api.JobEvent{Note: "node beta does not answer"})
	if !strings.HasSuffix(out.String(), "\r\x1b[KNode beta does not answer.\n") {
		t.Errorf("%q", out.String())
	}
}

// What is watched of a sweep is the model that is ahead.
func TestWatchASweep(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := clitest.Then
	v.live.Now = func() time.Time { return now }
	state := clitest.Jobs()[1]
	state.Models = 3
	v.show(api.JobEvent{State: &state})
	for n := range 2 {
		e := clitest.Epoch(n + 4)
		e.Model = n + 1
		v.show(api.JobEvent{Epoch: &e})
		now = now.Add(6 * time.Second)
	}
	const want = "Job j8 trains 3 models (sage) on products?[2J on beta, 20 epochs.\n" +
		"epoch 5 of 20, model 2 ahead: loss 0.3000, validation 79.0 %, 2.1ms an epoch\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

// Only whole epochs have a line above the bar.
func TestNoLinesWithinEpochs(t *testing.T) {
	var out strings.Builder
	v := newView(&out, false)
	now := clitest.Then
	v.live.Now, v.live.Terminal = func() time.Time { return now }, true
	state, e := clitest.SharedJobs()[1], clitest.SharedEpoch(4)
	v.show(api.JobEvent{State: &state})
	v.show(api.JobEvent{Epoch: &e})
	now = now.Add(time.Minute)
	v.show(api.JobEvent{Progress: &api.JobProgress{Epoch: 5, Step: 3, Steps: 9}})
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q", out.String())
	}
}
