// Package scripts tests the shell scripts beside it, with a go command that only
// pretends.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What a package prints in which the race detector died.
const death = `SIGSEGV: segmentation violation
PC=0x4a1b2c m=7 sigcode=1 addr=0x8

goroutine 0 gp=0xc000102c40 m=7 mp=0xc000100808 [idle]:
`

// TestRace runs packages again only where nothing but the detector's death failed them.
func TestRace(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string // the output of each run; a run with a line of FAIL fails
		runs          int
		passes        bool
	}{
		"all pass":     {"ok  \ta\t1s\n?   \tb\t[no test files]\n", "", 1, true},
		"a death":      {"ok  \ta\t1s\n" + death + "FAIL\tb\t1s\nok  \tc\t1s\nFAIL\n", "ok  \tb\t1s\n", 2, true},
		"two deaths":   {death + "FAIL\tb\t1s\n" + death + "FAIL\tc\t1s\nFAIL\n", "ok  \tb\t1s\nok  \tc\t1s\n", 2, true},
		"dies again":   {death + "FAIL\tb\t1s\nFAIL\n", death + "FAIL\tb\t1s\nFAIL\n", 2, false},
		"a test":       {"--- FAIL: TestX (0.1s)\nFAIL\nFAIL\tb\t1s\nFAIL\n", "", 1, false},
		"a test, too":  {death + "FAIL\tb\t1s\n--- FAIL: TestX (0.1s)\nFAIL\nFAIL\tc\t1s\nFAIL\n", "", 1, false},
		"test, died":   {"--- FAIL: TestX (0.1s)\n" + death + "FAIL\tb\t1s\nFAIL\n", "", 1, false},
		"race, died":   {"WARNING: DATA RACE\n" + death + "FAIL\tb\t1s\nFAIL\n", "", 1, false},
		"a build":      {"FAIL\tb [build failed]\nFAIL\n", "", 1, false},
		"Go's own":     {"panic: nil map\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4]\nFAIL\tb\t1s\nFAIL\n", "", 1, false},
		"death before": {death + "ok  \ta\t1s\nFAIL\tb\t1s\nFAIL\n", "", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"1": c.first, "2": c.second} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			script := `#!/bin/sh
cd "` + dir + `" && echo "$@" >>calls && n=$(grep -c . calls) && cat $n && ! grep -q ^FAIL $n
`
			fake := filepath.Join(dir, "go")
			if err := os.WriteFile(fake, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), "./race", "9m", "a", "b", "c")
			run.Env = append(os.Environ(), "GO="+fake, "TMPDIR="+dir)
			out, err := run.CombinedOutput()
			if passes := err == nil; passes != c.passes {
				t.Errorf("race passes: %t, want %t:\n%s", passes, c.passes, out)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
			if len(lines) != c.runs {
				t.Fatalf("%d runs, want %d:\n%s", len(lines), c.runs, out)
			}
			if lines[0] != "test -race -timeout 9m a b c" {
				t.Errorf("the first run is %q", lines[0])
			}
			if again := strings.Contains(string(out), "the race detector itself died in"); again != (c.runs == 2) {
				t.Errorf("the output does not say why it runs again, or says so for nothing:\n%s", out)
			}
			if name == "a death" && lines[1] != "test -race -timeout 9m b" {
				t.Errorf("the second run is %q", lines[1])
			}
			left, err := filepath.Glob(filepath.Join(dir, "tmp.*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// TestTimes fails where a test does, or a package takes too much CPU time.
func TestTimes(t *testing.T) {
	script, err := filepath.Abs("times")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		limit, test string
		passes      bool
		says        string
	}{
		"little":  {"60", "true", true, "0.0 s  together"},
		"much":    {"0", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", false, "s  a/b  above 0 s"},
		"a fault": {"60", "false", false, "0.0 s  together"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
				t.Fatal(err)
			}
			// go test -count=1 -exec SCRIPT runs the test of a/b by that script.
			fake := filepath.Join(dir, "go")
			if err := os.WriteFile(fake, []byte("#!/bin/sh\ncd a/b && \"$4\" sh -c '"+c.test+"'\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "scripts"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(script, filepath.Join(dir, "scripts", "times")); err != nil {
				t.Fatal(err)
			}
			run := exec.CommandContext(t.Context(), "scripts/times", c.limit, "./...")
			run.Dir, run.Env = dir, append(os.Environ(), "GO="+fake, "TMPDIR="+dir, "CPU_TIMES=") // as if no other times ran this test
			out, err := run.CombinedOutput()
			if passes := err == nil; passes != c.passes || !strings.Contains(string(out), c.says) {
				t.Errorf("it passes: %t, want %t, and prints %q, want %q", passes, c.passes, out, c.says)
			}
			left, err := filepath.Glob(filepath.Join(dir, "tmp.*"))
			if err != nil || len(left) != 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// TestFuzz says how many inputs a target had, runs it again where only its time was over, and fails
// where it had hardly any.
func TestFuzz(t *testing.T) {
	const over = "--- FAIL: FuzzOne (5.01s)\n    context deadline exceeded\nFAIL\n"
	for name, c := range map[string]struct {
		first, second, time string
		runs                int
		passes              bool
		says                string
	}{
		"many":             {"fuzz: elapsed: 3s, execs: 900 (300/sec)\nfuzz: elapsed: 5s, execs: 1500 (300/sec)\nPASS\n", "", "5s", 1, true, "1500 executions in 5s"},
		"few":              {"fuzz: elapsed: 60s, execs: 18 (0/sec)\nPASS\n", "", "60s", 1, false, "fewer than 10 executions a second"},
		"none":             {"PASS\n", "", "5s", 1, false, "fewer than 10 executions a second"},
		"few, but briefly": {"fuzz: elapsed: 2s, execs: 3 (1/sec)\nPASS\n", "", "2s", 1, true, "3 executions in 2s"},
		"the time is over": {over, "fuzz: elapsed: 5s, execs: 800 (160/sec)\nPASS\n", "5s", 2, true, "800 executions in 5s"},
		"twice":            {over, over, "5s", 2, false, "FAIL"},
		"an input fails":   {"Failing input written to it\n" + over, "", "5s", 1, false, "Failing input"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := `#!/bin/sh
cd "` + dir + `" && echo "$@" >>calls && n=$(grep -c . calls) && cat $n && ! grep -q ^FAIL $n
`
			for file, text := range map[string]string{"1": c.first, "2": c.second, "go": script} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.CommandContext(t.Context(), "./fuzz", "./a", "FuzzOne", c.time)
			run.Env = append(os.Environ(), "GO="+filepath.Join(dir, "go"))
			out, err := run.CombinedOutput()
			if passes := err == nil; passes != c.passes || !strings.Contains(string(out), c.says) {
				t.Errorf("fuzz passes: %t, want %t:\n%s", passes, c.passes, out)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Repeat("test ./a -run ^$ -fuzz ^FuzzOne$ -fuzztime "+c.time+" -fuzzminimizetime 5x\n", c.runs)
			if string(calls) != want {
				t.Errorf("it ran\n%swant\n%s", calls, want)
			}
		})
	}
}

// TestFuzzHours gives each target its portions, goes on where it stopped, and ends at a failure.
func TestFuzzHours(t *testing.T) {
	script, err := filepath.Abs("fuzzhours")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, folder := range []string{"a", "scripts"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(script, filepath.Join(dir, "scripts", "fuzzhours")); err != nil {
		t.Fatal(err)
	}
	fuzzer := `#!/bin/sh
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
echo "fuzz: elapsed: 3s, execs: 100 (33/sec)"; if [ -e ../fails ]; then echo "Failing input written to it"; exit 1; fi
`
	// go test -c -fuzz TARGET -o FILE ./a writes the fuzzer, and go version says one.
	fake := "#!/bin/sh\nif [ $1 = version ]; then echo go version go9 here; else cp \"" + dir + "/fuzzer\" \"$6\"; fi\n"
	for name, text := range map[string]string{"a/a_test.go": "func FuzzOne(f)\nfunc FuzzTwo(f)\n", "fuzzer": fuzzer, "go": fake} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fuzz := func(hours string) (string, error) {
		run := exec.CommandContext(t.Context(), "scripts/fuzzhours", hours, "page.md")
		run.Dir, run.Env = dir, append(os.Environ(), "GO="+filepath.Join(dir, "go"), "FUZZED="+filepath.Join(dir, "kept"), "TMPDIR="+dir)
		out, err := run.CombinedOutput()
		return string(out), err
	}
	portions := func() (list []string) {
		text, err := os.ReadFile(filepath.Join(dir, "kept", "portions"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			target, _, _ := strings.Cut(strings.TrimPrefix(line, "a "), " ")
			list = append(list, target)
		}
		return list
	}
	if out, err := fuzz("0.000003"); err != nil || len(portions()) != 1 {
		t.Fatalf("%v after %v: %s", err, portions(), out)
	}
	if out, err := fuzz("0.00003"); err != nil || len(portions()) < 2 || portions()[0] != "FuzzOne" || portions()[1] != "FuzzTwo" {
		t.Fatalf("%v after %v: %s", err, portions(), out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.md"))
	if err != nil || !strings.Contains(string(page), "None failed.") || !strings.Contains(string(page), "| a | FuzzTwo |") {
		t.Errorf("%v: %s", err, page)
	}
	if err := os.WriteFile(filepath.Join(dir, "fails"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(portions())
	out, err := fuzz("1")
	if page, _ = os.ReadFile(filepath.Join(dir, "page.md")); err == nil || len(portions()) != before || !strings.Contains(out, "Failing input") || !strings.Contains(string(page), " failed.**") {
		t.Errorf("%v after %v: %s; %s", err, portions(), out, page)
	}
}
