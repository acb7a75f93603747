package npz

import (
	"archive/zip"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// IsPickle reports whether a file's name is one that PyTorch or Python's pickle gives.
func IsPickle(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".pt", ".pth", ".pkl", ".pickle":
		return true
	}
	return false
}

// plainName is a name that means nothing to a shell or to Python.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// Pickled returns the error that answers a file of PyTorch or a pickle, which is not opened,
// since that may run anything. It has the line that makes an archive of it.
func Pickled(name string) error {
	file := filepath.Base(name)
	if !plainName.MatchString(file) {
		file = "data.pt"
	}
	load := fmt.Sprintf("import torch, numpy as np; d = torch.load('%s', weights_only=False)", file)
	if ext := strings.ToLower(filepath.Ext(file)); ext == ".pkl" || ext == ".pickle" {
		load = fmt.Sprintf("import pickle, numpy as np; d = pickle.load(open('%s', 'rb'))", file)
	}
	line := load + "; d = d[0] if isinstance(d, (tuple, list)) else d; d = d if isinstance(d, dict) else d.to_dict(); " +
		"np.savez('data.npz', **{k: v.numpy() if hasattr(v, 'numpy') else v for k, v in d.items() if hasattr(v, 'shape')})"
	return fmt.Errorf(`%s holds Python objects, and loading them can run anything: if you trust the file, type python3 -c "%s" and import data.npz`, source.Printable(filepath.Base(name)), line)
}

// isTorch reports whether an archive is PyTorch's, which has a pickle in it.
func isTorch(members []*zip.File) bool {
	for _, f := range members {
		if strings.HasSuffix(f.Name, "/data.pkl") || f.Name == "data.pkl" {
			return true
		}
	}
	return false
}
