package member

import (
	"encoding/json"
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
		checked(1): "", `{"disk":1,"chegk":""}`: "is damaged", strings.Replace(checked(1), "}", `,"more":"of a later version"}`, 1): "",
		checked(7):          "is kept by number 7, as a later version of hopmesh does, and this one reads 1",
		flipped(checked(1)): "is damaged", strings.Replace(checked(1), "check", "chegk", 1): "is damaged",
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

// checked is what this program writes for a number.
func checked(disk int) string {
	b, _ := json.Marshal(newFormat(disk))
	return string(b)
}

// flipped has one bit of the number flipped: 1 becomes 3.
func flipped(text string) string { return strings.Replace(text, `"disk":1`, `"disk":3`, 1) }

// One from before there were numbers counts as 1, and the number goes up with what is kept. So
// does one that holds no more than the number.
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
	if err := os.WriteFile(d.formatFile(), []byte(`{ "disk": 1 }`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reads mesh.Range
		ok    bool
		kept  string
	}{
		{mesh.Range{Min: 1, Max: 1}, true, checked(1)},
		{mesh.Range{Min: 1, Max: 2}, true, checked(2)},
		{mesh.Range{Min: 1, Max: 1}, false, checked(2)},
		{mesh.Range{Min: 2, Max: 3}, true, checked(3)},
		{mesh.Range{Min: 4, Max: 4}, false, checked(3)},
	} {
		if err := d.checkFormat(c.reads); (err == nil) != c.ok || kept() != c.kept {
			t.Errorf("%s: %v, %s", c.reads, err, kept())
		}
	}
}
