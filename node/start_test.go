package node

import (
	"strings"
	"testing"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	good := Options{DataDir: "x", Name: "n"}
	for name, c := range map[string]struct {
		change func(o *Options)
		says   string
	}{
		"no directory":           {func(o *Options) { o.DataDir = "" }, "--data-dir"},
		"a name with a space":    {func(o *Options) { o.Name = "a b" }, "--name"},
		"both ways into a mesh":  {func(o *Options) { o.Bootstrap, o.Join, o.Token = true, []string{"h:1"}, "t" }, "--bootstrap"},
		"a token without a peer": {func(o *Options) { o.Token = "t" }, "--join"},
		"a peer without a port":  {func(o *Options) { o.Join, o.Token = []string{"10.0.0.1"}, "t" }, "HOST:PORT"},
		"no place to listen":     {func(o *Options) { o.Listen = "nowhere" }, "--listen"},
		"a wildcard to dial":     {func(o *Options) { o.Advertise = "0.0.0.0:7946" }, "--advertise"},
		"an unknown device":      {func(o *Options) { o.Device = "abacus" }, "abacus"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			c.change(&o)
			if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestANodeInNoMeshSaysWhatItComputesOn(t *testing.T) {
	n, err := New(Options{DataDir: "x", Name: "n", Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := n.Backend().Status(t.Context())
	if err != nil || s.Device != "cpu" || s.DeviceReason != "the processor was asked for" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestSpeedIsFoundByRun(t *testing.T) {
	n, err := New(Options{DataDir: t.TempDir(), Name: "n1", Listen: "127.0.0.1:0", Device: "cpu"})
	if err != nil || n.opts.Speed != 0 {
		t.Fatalf("a speed of %d before it runs: %v", n.opts.Speed, err)
	}
	if n.findSpeed(t.Context()); n.opts.Speed == 0 {
		t.Error("it has none afterwards")
	}
}
