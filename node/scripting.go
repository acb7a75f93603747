package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/member"
	"github.com/hopmesh/hopmesh/node/scripts"
)

// python returns the program that runs scripts here; "": none does.
func (o *Options) python() string {
	switch o.Python {
	case "off":
		return ""
	case "":
		host, _, err := net.SplitHostPort(o.Listen)
		ip, err2 := netip.ParseAddr(host)
		if err != nil || err2 != nil || !ip.IsLoopback() {
			return ""
		}
		return "python3"
	}
	return o.Python
}

// scripts connects the part that runs scripts with the others.
func (o *Options) scripts(dir *member.Dir, p *parts, log *slog.Logger) scripts.Config {
	socket := dir.Socket()
	if whole, err := filepath.Abs(socket); err == nil {
		socket = whole
	}
	network, state := p.member.Mesh(), p.member.Plan()
	return scripts.Config{
		Mesh: network, Python: o.python(), Socket: "unix:" + socket, Dir: filepath.Join(o.DataDir, "scripts"), Log: log,
		Nodes: func() (list []scripts.Node) {
			s := state.State()
			alive := map[string]bool{network.ID(): true}
			for _, m := range network.Members() {
				alive[m.ID] = alive[m.ID] || m.Status == mesh.Alive
			}
			for id, m := range s.Members {
				if alive[id] {
					list = append(list, scripts.Node{ID: id, Name: m.Name})
				}
			}
			slices.SortFunc(list, func(a, b scripts.Node) int { return strings.Compare(a.ID, b.ID) })
			return list
		},
		Jobs: func() (list []scripts.Job) {
			for _, j := range state.State().Jobs {
				if run := runOf(&j); run != "" {
					list = append(list, scripts.Job{ID: j.ID, Run: run, Over: j.State != plan.Queued && j.State != plan.Running, Done: j.State == plan.Done})
				}
			}
			return list
		},
		Stop: func(ctx context.Context, id string) error { return p.jobs.Stop(ctx, id) },
	}
}

// runOf returns the word by which programs find a job; "": it has none.
func runOf(j *plan.Job) string {
	var r struct {
		Sharing struct {
			Values map[string]string `json:"values"`
		} `json:"sharing"`
	}
	if json.Unmarshal([]byte(j.Recipe), &r) != nil {
		return ""
	}
	return r.Sharing.Values["program.run"]
}
