package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"net/netip"

	"github.com/hopmesh/hopmesh/mesh"
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

func TestDataDirIsLocked(t *testing.T) {
	path := t.TempDir()
	d, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("opened twice: %v", err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}

func TestSavedPeers(t *testing.T) {
	d := &dataDir{path: t.TempDir()}
	if got := d.loadPeers(); got != nil {
		t.Errorf("none saved, got %v", got)
	}
	want := []mesh.Peer{{ID: "a", Addr: netip.MustParseAddrPort("10.0.0.1:7946")}}
	if err := d.savePeers(want); err != nil {
		t.Fatal(err)
	}
	if got := d.loadPeers(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if err := os.WriteFile(d.peersFile(), []byte(`[{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := d.loadPeers(); got != nil {
		t.Errorf("a damaged file gave %v", got)
	}
}

// A log without an identity is somebody else's, or a copy: no new node may take
// it over.
func TestLogWithoutIdentityIsRefused(t *testing.T) {
	d := &dataDir{path: t.TempDir()}
	if err := emptyRaft(d); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.raft(), "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := emptyRaft(d); err == nil || !strings.Contains(err.Error(), d.raft()) {
		t.Errorf("got %v", err)
	}
}

// An identity without its log is no node any more: only a fresh one begins a log.
func TestIdentityWithoutLogIsRefused(t *testing.T) {
	d := &dataDir{path: t.TempDir()}
	if err := d.checkLog(); err == nil || !strings.Contains(err.Error(), "force-leave") {
		t.Errorf("a lost log was taken: %v", err)
	}
	if err := d.begin(); err != nil {
		t.Fatal(err)
	}
	if err := d.checkLog(); err != nil || !d.fresh() {
		t.Errorf("a fresh node was refused: %v", err)
	}
	if err := d.begun(); err != nil {
		t.Fatal(err)
	}
	if err := d.begun(); err != nil || d.fresh() {
		t.Errorf("still fresh, %v", err)
	}
	if err := os.MkdirAll(filepath.Join(d.raft(), "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.checkLog(); err != nil {
		t.Error(err)
	}
}

func TestVotersFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		says string
	}{
		"ids, comments, blanks": {"aa # the first\n\n# none\n bb \n", []string{"aa", "bb"}, ""},
		"none":                  {"# nobody\n", nil, "no voter"},
		"two on a line":         {"aa\naa bb\n", nil, "line 2"},
		"twice":                 {"aa\nbb\naa\n", nil, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "voters")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readVoters(file)
			if !slices.Equal(got, c.want) && c.says == "" {
				t.Errorf("got %v, %v", got, err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), file)) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := readVoters("no/such/file"); err == nil {
		t.Error("read a file that is not there")
	}
}

// A listener that is slow loses values, and holds nobody up.
func TestHub(t *testing.T) {
	var h hub[int]
	h.send(1) // to nobody
	if h.heard() {
		t.Error("somebody listens")
	}
	c := h.listen(t.Context())
	for i := range 1000 {
		h.send(i)
	}
	if got := len(c); got != cap(c) {
		t.Errorf("%d values wait, of %d", got, cap(c))
	}
	if first := <-c; first != 0 {
		t.Errorf("the first is %d", first)
	}
}
