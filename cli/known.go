package cli

import "fmt"

// ogbFolders are the archives of the Open Graph Benchmark's graphs, as its own table of them
// (ogb/nodeproppred/master.csv) names them, with the folder in each.
var ogbFolders = map[string]struct{ archive, folder, flags string }{
	"ogbn-arxiv":      {"arxiv.zip", "arxiv", " --undirected"},
	"ogbn-products":   {"products.zip", "products", " --undirected"},
	"ogbn-papers100M": {"papers100M-bin.zip", "papers100M-bin", " --undirected"},
}

// ogbFrom is where the archives lie.
const ogbFrom = "https://snap.stanford.edu/ogb/data/nodeproppred/"

// bring says how to import a graph that is known by its name, or returns "".
func bring(command, name string) string {
	known, is := ogbFolders[name]
	if !is {
		return ""
	}
	return fmt.Sprintf("bring %s%s to this machine, unpack it, and type: %s %s %s%s", ogbFrom, known.archive, command, name, known.folder, known.flags)
}
