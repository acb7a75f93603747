package read

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Options say how a source is read.
type Options struct {
	Format string // auto (or empty), npz, planetoid, ogb, csv or parquet
	// Memory bounds what the source holds, in bytes; 0: no bound.
	Memory uint64
	// Report is told of passes that are made while opening; it may be nil.
	Report func(graph.Progress)
}

// openers open each format.
var openers = map[string]func(ctx context.Context, path string, o Options) (graph.Source, error){
	"npz":       openNPZ,
	"planetoid": openPlanetoid,
	"ogb":       openOGB,
	"csv":       openCSV,
	"parquet":   openParquet,
}

// Open opens the graph at a path, which is a file or a folder. Who opened it closes
// it.
func Open(ctx context.Context, path string, o Options) (graph.Source, error) {
	format := o.Format
	if format != "" && format != "auto" && openers[format] == nil {
		return nil, fmt.Errorf("the format %q is not known: give auto, npz, planetoid, ogb, csv or parquet", format)
	}
	planetoid, err := regular(path)
	if err != nil {
		return nil, err
	}
	if format == "" || format == "auto" {
		if planetoid {
			format = "planetoid"
		} else if format, err = detect(path); err != nil {
			return nil, err
		}
	}
	return openers[format](ctx, path, o)
}

// regular refuses what is neither a file nor a folder: a pipe or a device could
// hold the reader forever. It also says whether path is not there itself but is how
// the names of Planetoid's files begin.
func regular(path string) (planetoid bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if x, statErr := os.Stat(path + ".allx"); statErr == nil && x.Mode().IsRegular() {
			return true, nil
		}
		return false, fmt.Errorf("there is no file or folder %s on this machine: check the path", path)
	case errors.Is(err, fs.ErrPermission):
		return false, fmt.Errorf("%s may not be read by the daemon: give the user that it runs as the right to read it", path)
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", path, err)
	case !info.IsDir() && !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is neither a file nor a folder: copy what it holds to a file first", path)
	}
	return false, nil
}

var (
	csvFiles     = []string{".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"}
	parquetFiles = []string{".parquet", ".arrow", ".feather"}
)

// detect tells a format by the names of what is there.
func detect(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", path, err)
	}
	if !info.IsDir() {
		name := strings.ToLower(filepath.Base(path))
		switch {
		case strings.HasSuffix(name, ".npz"):
			return "npz", nil
		case isPlanetoid(filepath.Base(path)):
			return "planetoid", nil
		case endsIn(name, csvFiles):
			return "csv", nil
		case endsIn(name, parquetFiles):
			return "parquet", nil
		}
		return "", fmt.Errorf("%s does not say by its name what it is (.npz, ind.NAME.x, .csv, .tsv, .txt with or without .gz, .parquet, .arrow or .feather): rename it, or give the format", filepath.Base(path))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", path, err)
	}
	found := ""
	var archives []string
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		format := ""
		switch stem, ending, _ := strings.Cut(name, "."); {
		case name == "raw" || name == "split":
			format = "ogb"
		case isPlanetoid(e.Name()):
			format = "planetoid"
		case stem == "edges" && endsIn("."+ending, csvFiles):
			format = "csv"
		case stem == "edges" && endsIn("."+ending, parquetFiles):
			format = "parquet"
		case strings.HasSuffix(name, ".npz"):
			archives = append(archives, e.Name())
		}
		if format == "ogb" && !isOGB(path) {
			format = ""
		}
		if format != "" && found != "" && format != found {
			return "", fmt.Errorf("%s holds files of the formats %s and %s: give the format that is meant", path, found, format)
		}
		if format != "" {
			found = format
		}
	}
	switch {
	case found != "":
		return found, nil
	case len(archives) > 0:
		return "", fmt.Errorf("%s is a folder with %s in it: give the path of that file", path, archives[0])
	}
	return "", fmt.Errorf("%s holds no graph that is known by its files' names (ind.NAME.x and its like of Planetoid, raw/ and split/ of OGB, edges.csv or edges.parquet): check the path, or rename the file with the edges", path)
}

func endsIn(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) && len(name) >= len(e) {
			return true
		}
	}
	return false
}
