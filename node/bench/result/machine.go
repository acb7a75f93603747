package result

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A Machine is what figures were measured on.
type Machine struct {
	Processor string
	Cores     int
	System    string // such as a distribution with its version
	Platform  string // operating system and architecture, as Go names them
	Go        string // the version of its toolchain
}

// ThisMachine describes the machine that runs this program.
func ThisMachine() Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS, Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if model := field("/proc/cpuinfo", ":", "model name"); model != "" {
		m.Processor = model
	}
	if name := field("/etc/os-release", "=", "PRETTY_NAME"); name != "" {
		m.System = strings.Trim(name, `"`)
	}
	return m
}

// String describes the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%d cores, %s, %s, %s", m.Cores, m.Processor, m.Platform, m.Go)
}

// field returns the first value of a key in a file of pairs, or "".
func field(file, separator, key string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, value, ok := strings.Cut(line, separator); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
