package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hopmesh/hopmesh/node/api"
)

// An archive is one of the Open Graph Benchmark's, as its own table of them
// (ogb/nodeproppred/master.csv) names them, with the folder in it.
type ogbArchive struct {
	name, folder string
	// packed means that its arrays are packed once more, so that it has to be unpacked.
	packed bool
}

// ogbArchives are those of graphs that are known by their names. Their edges are listed once.
var ogbArchives = map[string]ogbArchive{
	"ogbn-arxiv":      {name: "arxiv.zip", folder: "arxiv"},
	"ogbn-products":   {name: "products.zip", folder: "products"},
	"ogbn-papers100M": {name: "papers100M-bin.zip", folder: "papers100M-bin", packed: true},
}

// ogbFrom is where the archives lie, on ogbHost.
const (
	ogbHost = "snap.stanford.edu"
	ogbFrom = "https://" + ogbHost + "/ogb/data/nodeproppred/"
)

// fetched returns the address of a graph that the daemon reads by its name, or "".
func fetched(name string) string {
	if known, is := ogbArchives[name]; is && !known.packed {
		return ogbFrom + known.name
	}
	return ""
}

// unread reports whether importing a graph that is known by its name failed because its address
// could not be read. The daemon has no status for that alone: what it says names the archive, the
// host or the server.
func unread(err error, name string) bool {
	e, is := errors.AsType[*api.Error](err)
	if !is || e.Status != http.StatusBadRequest && e.Status != http.StatusServiceUnavailable {
		return false
	}
	for _, what := range []string{ogbArchives[name].name, ogbHost, "the server "} {
		if strings.Contains(e.Message, what) {
			return true
		}
	}
	return false
}

// bring says how to import a graph that is known by its name without the daemon's network, or
// returns "".
func bring(command, name string) string {
	known, is := ogbArchives[name]
	switch {
	case !is:
		return ""
	case known.packed:
		return fmt.Sprintf("bring %s%s to this machine, unpack it, and type: %s %s %s --undirected", ogbFrom, known.name, command, name, known.folder)
	}
	return fmt.Sprintf("bring %s%s to this machine, and type: %s %s %s --undirected", ogbFrom, known.name, command, name, known.name)
}
