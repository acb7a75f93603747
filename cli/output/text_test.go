package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Text of files and of other machines can't control the terminal, however it is printed.
func TestNothingControlsTheTerminal(t *testing.T) {
	const bad = "y\x1b]0;owned\x07\x9b2J\u009b31m\x7f\u202e\r."
	var b bytes.Buffer
	for _, write := range []func() error{
		func() error { return JSON(&b, map[string]string{bad: bad}) },
		func() error { return JSONLine(&b, bad) },
		func() error { return Table(&b, []string{bad, "x"}) },
		func() error { _, err := Plain(&b).Write([]byte(bad + "\n\tindented\n")); return err },
		func() error { b.WriteString(Sentence(bad) + Cell(bad) + Lines(bad+"\n"+bad)); return nil },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range b.String() {
		if r != '\n' && (r < ' ' || r >= 0x7f && r <= 0x9f) {
			t.Errorf("%q is printed: %q", r, b.String())
		}
	}
	if !strings.Contains(b.String(), "\n    indented\n") {
		t.Errorf("lines are lost: %q", b.String())
	}
	b.Reset()
	if err := JSON(&b, "a\u009b\x7fb<"); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back != "a\u009b\x7fb<" || !strings.Contains(b.String(), "<") {
		t.Errorf("%s reads as %q (%v)", b.String(), back, err)
	}
}
