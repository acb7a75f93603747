package cli

import (
	"context"
	"io"
)

// Local is what commands run in this process. Data goes to stdout, diagnostics
// to stderr; an error ends the program with exit code 1.
type Local struct {
	Agent func(ctx context.Context, cfg AgentConfig, stdout, stderr io.Writer) error
	Demo  func(ctx context.Context, cfg DemoConfig, stdout, stderr io.Writer) error
	Bench func(ctx context.Context, cfg BenchConfig, stdout io.Writer) error
	// Parts names what `bench strategies` can be told to measure only.
	Parts   []string
	Shaped  func(ctx context.Context, cfg ShapedConfig, stdout, stderr io.Writer) error
	Doctor  func(ctx context.Context, cfg DoctorConfig, stdout io.Writer) error
	Recover func(ctx context.Context, cfg RecoverConfig, stdout io.Writer) error
	// Options lists what `train start --set` can set.
	Options func() []TrainOption
}

// TrainOption is one setting of training.
type TrainOption struct {
	Key     string `json:"key"`
	Applies string `json:"applies"` // to what, such as a model, a strategy, or strategies; "": to all models
	Values  string `json:"values"`
	Default string `json:"default"`
	Help    string `json:"help"`
}

// AgentConfig is what `hopmesh agent` was told by flags, environment, file and
// defaults.
type AgentConfig struct {
	DataDir   string
	Name      string
	Listen    string
	Advertise string   // "": the address that routes to the first peer
	API       []string // beside the socket in DataDir
	Bootstrap bool
	Join      []string
	Token     string
	Device    string
	Memory    uint64 // bytes, 0: no bound
	LogLevel  string // debug, info, warn or error
	LogFormat string // text or json
}

// DemoConfig is what `hopmesh demo` was told.
type DemoConfig struct {
	Nodes    int
	Strategy string
	Epochs   int
	Device   string
	JSON     bool
}

// BenchConfig is what `hopmesh bench` was told.
type BenchConfig struct {
	Suite  string   // transport, data, kernels, sampler or strategies
	Graphs string   // a folder, or ""
	Nodes  int      // of strategies
	Plot   string   // a file to be written, or ""
	Only   []string // parts of strategies; none: all
	// PlotPipe is a file to be written, or "".
	PlotPipe string
	JSON     bool
}

// DoctorConfig is what `hopmesh doctor` was told.
type DoctorConfig struct {
	Peer   string // HOST:PORT, or ""
	Listen string // UDP address of this machine's agent
	JSON   bool
}

// RecoverConfig is what `hopmesh recover` was told.
type RecoverConfig struct {
	DataDir    string
	VotersFile string
}
