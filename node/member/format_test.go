package member

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/mesh"
)

// A directory that another version keeps in a way of its own is refused in one sentence, and left
// as it is.
func TestDirectoriesOfOtherVersions(t *testing.T) {
	for text, want := range map[string]string{
		`{"disk":1}`: "", `{"disk":1,"more":"of a later version"}`: "",
		`{"disk":7}`: "is kept by number 7, as a later version of hopmesh does, and this one reads 1",
		`{"disk":0}`: "is damaged", `half`: "is damaged", ``: "is damaged",
		strings.Repeat(" ", maxFormat) + `{"disk":1}`: "is damaged",
	} {
		path := t.TempDir()
		file := filepath.Join(path, "format.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := OpenDir(path)
		if err == nil {
			_ = d.Close()
		}
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%.40q: %v", text, err)
		}
		if b, _ := os.ReadFile(file); string(b) != text {
			t.Errorf("%.40q was changed to %q", text, b)
		}
	}
}

// One from before there were numbers counts as 1, and the number goes up with what is kept.
func TestNumberOfADirectory(t *testing.T) {
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	kept := func() string {
		b, _ := os.ReadFile(d.formatFile())
		return string(b)
	}
	for _, c := range []struct {
		reads mesh.Range
		ok    bool
		kept  string
	}{
		{mesh.Range{Min: 1, Max: 1}, true, `{"disk":1}`},
		{mesh.Range{Min: 1, Max: 2}, true, `{"disk":2}`},
		{mesh.Range{Min: 1, Max: 1}, false, `{"disk":2}`},
		{mesh.Range{Min: 2, Max: 3}, true, `{"disk":3}`},
		{mesh.Range{Min: 4, Max: 4}, false, `{"disk":3}`},
	} {
		if err := d.checkFormat(c.reads); (err == nil) != c.ok || kept() != c.kept {
			t.Errorf("%s: %v, %s", c.reads, err, kept())
		}
	}
}
