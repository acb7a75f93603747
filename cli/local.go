package cli

import (
	"context"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/cli/train"
)

// Local holds what commands run in this process. Data goes to stdout, diagnostics to stderr.
// An error ends the program with exit code 1, or 2 if it is wrapped by usage.Wrap.
type Local struct {
	Agent func(ctx context.Context, cfg AgentConfig, stdout, stderr io.Writer) error
	Demo  func(ctx context.Context, cfg DemoConfig, stdout, stderr io.Writer) error
	Bench func(ctx context.Context, cfg BenchConfig, stdout io.Writer) error
	// DemoStrategy is the default of `demo --strategy`.
	DemoStrategy string
	// Parts lists what `bench strategies --only` accepts, and ScaleParts what `bench scale
	// --only` does.
	Parts      []string
	ScaleParts []string
	Shaped     func(ctx context.Context, cfg ShapedConfig, stdout, stderr io.Writer) error
	Doctor     func(ctx context.Context, cfg DoctorConfig, stdout io.Writer) error
	Recover    func(ctx context.Context, cfg RecoverConfig, stdout io.Writer) error
	Restore    func(ctx context.Context, cfg RestoreConfig, stdout io.Writer) error
	// Strategies lists what `train start --strategy` accepts.
	Strategies []string
	// Draw draws what `train forecast --plot` asks for.
	Draw train.Draw
	// Options lists the settings of `train start --set`.
	Options func() []train.Option
}

// AgentConfig has the settings of `hopmesh agent`, from flags, environment, file and defaults.
type AgentConfig struct {
	DataDir   string
	Name      string
	Listen    string
	Advertise string   // "": the address that routes to the first peer
	API       []string // in addition to the socket in DataDir
	APIGroup  string   // the group that may use the sockets, or ""
	Bootstrap bool
	Join      []string
	Token     string
	TokenFile string // where to read the token, or "-" for standard input
	Device    string
	Memory    uint64 // bytes; 0: what the machine can give
	LogDir    string // where event files for TensorBoard go, or ""
	Python    string // what runs scripts, "off", or ""
	LogLevel  string // debug, info, warn or error
	LogFormat string // text or json
}

// DemoConfig has the settings of `hopmesh demo`.
type DemoConfig struct {
	Nodes    int
	Strategy string
	Epochs   int
	Device   string
	JSON     bool
}

// BenchConfig has the settings of `hopmesh bench`.
type BenchConfig struct {
	Suite    string   // the name of a command of bench
	Graphs   string   // a folder, or ""
	Nodes    int      // of strategies
	Plot     string   // a file to write, or ""
	Only     []string // parts of strategies; none: all
	PlotPipe string   // a file to write, or ""
	// PipeGraphs are those that pipe is timed on; none: all.
	PipeGraphs []string
	Out        string // a Markdown file to write, or ""
	JSON       bool
	Scale      ScaleConfig
	Minutes    int // of soak
}

// ScaleConfig has the settings of `hopmesh bench scale`, and of `bench forecast` those on
// cells.
type ScaleConfig struct {
	Dir    string // a folder that is kept, or ""
	Rows   string // parts of the names of cells, or ""
	Quick  bool
	Show   bool
	Older  bool
	Papers float64
}

// DoctorConfig has the settings of `hopmesh doctor`.
type DoctorConfig struct {
	Peer   string // HOST:PORT, or ""
	Listen string // UDP address of this machine's agent
	JSON   bool
}

// RecoverConfig has the settings of `hopmesh recover`.
type RecoverConfig struct {
	DataDir    string
	VotersFile string
}

// RestoreConfig has the settings of `hopmesh restore`.
type RestoreConfig struct {
	File    string
	DataDir string
}

// ShapedConfig has the settings of `hopmesh bench node`.
type ShapedConfig struct {
	AgentConfig
	Rate  uint64 // bits a second that its socket sends; 0: no limit
	Delay time.Duration
}
