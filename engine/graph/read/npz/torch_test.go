package npz

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

func TestPyTorchIsAnsweredWithTheLineToType(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"data/data.pkl", "data/byteorder", "data/data/0", "data/version"} {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, want string }{
		"torch's zip":   {b.String(), `type python3 -c "import torch, numpy as np; d = torch.load('g.npz', weights_only=False); `},
		"an old pickle": {"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", "torch.load('g.npz', weights_only=False)"},
	} {
		_, err := Open(t.Context(), readtest.Put(t, "g.npz", []byte(c.file)), source.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), " and import data.npz") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{"a b'); print('.pt": "torch.load('data.pt'", "g.pkl": "pickle.load(open('g.pkl', 'rb'))", "-x.pt": "torch.load('data.pt'"} {
		if got := Pickled(name).Error(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
