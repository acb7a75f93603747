package read

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tableEnding returns the ending of a table's file name, or nothing.
func tableEnding(path string) string {
	lower := strings.ToLower(path)
	for _, endings := range [][]string{csvFiles, parquetFiles} {
		for _, e := range endings {
			if strings.HasSuffix(lower, e) {
				return e
			}
		}
	}
	return ""
}

// findTables returns the file of each kind of table that a source has. A folder
// may mix formats; what is not a table's name is none of it.
func findTables(path string, endings []string) (map[tableKind]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no plain file: name an edge file, or a folder with one", path)
		}
		return map[tableKind]string{edgesTable: path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	found := map[tableKind]string{}
	for _, e := range entries {
		ending := tableEnding(e.Name())
		for kind := edgesTable; kind <= splitsTable; kind++ {
			if ending == "" || !strings.EqualFold(e.Name(), kind.String()+ending) {
				continue
			}
			if other := found[kind]; other != "" {
				return nil, fmt.Errorf("%s holds both %s and %s: leave one of them", path, filepath.Base(other), e.Name())
			}
			// What a name leads to may be a pipe, which would hold the reader forever.
			file := filepath.Join(path, e.Name())
			if info, err := os.Stat(file); err != nil {
				return nil, fmt.Errorf("look at %s: %w", file, err)
			} else if !info.Mode().IsRegular() {
				return nil, fmt.Errorf("%s is no plain file: put the table itself there", file)
			}
			found[kind] = file
		}
	}
	if found[edgesTable] == "" {
		return nil, fmt.Errorf("%s holds no edges: put a file edges%s there, or name the edge file itself", path, endings[0])
	}
	return found, nil
}

// openTable opens a file by its ending; one without a known ending is taken as text.
func openTable(ctx context.Context, path string, kind tableKind) (table, error) {
	switch tableEnding(path) {
	case ".parquet":
		return openParquetTable(path, kind)
	case ".arrow", ".feather":
		return openArrowTable(path, kind)
	}
	return openCSVTable(ctx, path, kind)
}

// tableSet is the tables of a source; a nil one is not there.
type tableSet [splitsTable + 1]table

func openTableSet(ctx context.Context, files map[tableKind]string) (set tableSet, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, set.close())
		}
	}()
	for kind := edgesTable; kind <= splitsTable; kind++ {
		if path := files[kind]; path != "" {
			if set[kind], err = openTable(ctx, path, kind); err != nil {
				set[kind] = nil
				if errors.Is(err, fs.ErrPermission) {
					err = fmt.Errorf("%s may not be read by the daemon (%w): give the user that it runs as the right to read it", path, fs.ErrPermission)
				}
				return set, err
			}
		}
	}
	return set, nil
}

func (s *tableSet) close() error {
	var all error
	for _, t := range s {
		if t != nil {
			all = errors.Join(all, t.close())
		}
	}
	return all
}
