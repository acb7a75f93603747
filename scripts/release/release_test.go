package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var date = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// What git describe says becomes versions that packages, sorted by dpkg, and Helm accept.
func TestWhatMayBeReplaced(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		file string
		ok   bool
	}{{"", true}, {"letters", false}, {sumsFile, true}} {
		if step.file != "" {
			if err := os.WriteFile(filepath.Join(dir, step.file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := replaceable(dir); (err == nil) != step.ok {
			t.Errorf("with %q: %v", step.file, err)
		}
	}
	if err := replaceable(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}

func TestPackaged(t *testing.T) {
	for in, want := range map[string]names{
		"v1.2.3":                        {"1.2.3", "1.2.3"},
		"1.2.3":                         {"1.2.3", "1.2.3"},
		"v1.2.3-dirty":                  {"1.2.3+dirty", "1.2.3+dirty"},
		"v1.2.3-rc.1":                   {"1.2.3~rc.1", "1.2.3-rc.1"},
		"v1.2.3-rc.1-14-g0123abc-dirty": {"1.2.3~rc.1+14.g0123abc.dirty", "1.2.3-rc.1+14.g0123abc.dirty"},
		"v1.2.3-4-g0123abc":             {"1.2.3+4.g0123abc", "1.2.3+4.g0123abc"},
		"0123abc":                       {"0.0.0~20260102030405.g0123abc", "0.0.0-20260102030405.g0123abc"},
		"0123abc-dirty":                 {"0.0.0~20260102030405.g0123abc.dirty", "0.0.0-20260102030405.g0123abc.dirty"},
	} {
		if got, err := packaged(in, date); err != nil || got != want {
			t.Errorf("%s becomes %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "dev", "v1.2", "v1.2.3; rm -rf /", "v1.2.3-beta/../x", "master"} {
		if got, err := packaged(in, date); err == nil || !strings.Contains(err.Error(), "git describe") {
			t.Errorf("%q becomes %v, %v, want an error that says what to give", in, got, err)
		}
	}
	sorted := []string{"0123abc", "v1.2.3-rc.1", "v1.2.3-rc.1-14-g0123abc", "v1.2.3", "v1.2.3-4-g0123abc", "v1.2.4"}
	for i := range len(sorted) - 1 {
		a, _ := packaged(sorted[i], date)
		b, _ := packaged(sorted[i+1], date)
		if dpkg, err := exec.LookPath("dpkg"); err == nil {
			if err := exec.CommandContext(t.Context(), dpkg, "--compare-versions", a.pkg, "lt", b.pkg).Run(); err != nil {
				t.Errorf("%s does not come before %s", a.pkg, b.pkg)
			}
		}
	}
}

// tree makes files that differ in all that must not count: times, modes, and where they
// are.
func tree(t *testing.T, mode os.FileMode, at time.Time) string {
	t.Helper()
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"amd64/hopmesh": b, "arm64/hopmesh": b, "LICENSE": []byte("free"), "README.md": []byte("read"), "CHANGELOG.md": []byte("none"),
		"completions/hopmesh.fish": []byte("fish"), "man/hopmesh.1.gz": []byte("z"), "systemd/hopmesh.service": []byte("unit"),
		"grafana/dashboard.json": []byte("{}"), "prometheus/alerts.yml": []byte("groups: []"), "image/Dockerfile": []byte("FROM scratch"),
		"helm/hopmesh/Chart.yaml":  []byte("name: hopmesh\nversion: \"0.0.0\"\nappVersion: \"0.0.0\"\nkeywords: []\n"),
		"helm/hopmesh/.helmignore": []byte("x"), "helm/hopmesh/templates/pod.yaml": []byte("{}"),
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packer stands for nfpm: its packages hold what it was given.
const packer = `#!/bin/sh
[ "$1 $2 $4" = "package --config --packager" ] && cat hopmesh >"$7" && echo "$5 $ARCH $PACKAGE_VERSION $SOURCE_DATE_EPOCH" >>"$7"
`

// The same files give the same bytes, whenever, wherever and by whomever they are packed.
func TestSameBytes(t *testing.T) {
	nfpm := filepath.Join(t.TempDir(), "nfpm")
	if err := os.WriteFile(nfpm, []byte(packer), 0o700); err != nil {
		t.Fatal(err)
	}
	var sums []string
	var into string
	for _, of := range []string{
		tree(t, 0o644, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)),
		tree(t, 0o755, time.Date(2030, 5, 5, 0, 0, 0, 0, time.UTC)),
	} {
		into = t.TempDir()
		r := release{into: into, version: "v1.2.3-4-g0123abc", nfpm: nfpm}
		if err := r.check("1767323045"); err != nil {
			t.Fatal(err)
		}
		if err := r.pack(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(into, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(b))
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases of the same files:\n%s\n%s", sums[0], sums[1])
	}
	want := []string{
		"hopmesh-1.2.3+4.g0123abc.aarch64.rpm", "hopmesh-1.2.3+4.g0123abc.tgz", "hopmesh-1.2.3+4.g0123abc.x86_64.rpm", "hopmesh_1.2.3+4.g0123abc_amd64.deb",
		"hopmesh_1.2.3+4.g0123abc_arm64.deb", "hopmesh_1.2.3+4.g0123abc_image.tar.gz", "hopmesh_1.2.3+4.g0123abc_linux_amd64.spdx.json",
		"hopmesh_1.2.3+4.g0123abc_linux_amd64.tar.gz", "hopmesh_1.2.3+4.g0123abc_linux_arm64.spdx.json", "hopmesh_1.2.3+4.g0123abc_linux_arm64.tar.gz",
	}
	var got []string
	for line := range strings.Lines(sums[0]) {
		got = append(got, strings.TrimSpace(line[66:]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("made %q, want %q", got, want)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = into
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	chart := unpacked(t, filepath.Join(into, want[1]))
	if text := string(chart["hopmesh/Chart.yaml"]); text != "name: hopmesh\nversion: \"1.2.3+4.g0123abc\"\nappVersion: \"1.2.3+4.g0123abc\"\nkeywords: []\n" {
		t.Errorf("the chart says:\n%s", text)
	}
	if image := unpacked(t, filepath.Join(into, want[5])); image["Dockerfile"] == nil || image["linux-arm64/hopmesh"] == nil || image["data/"] == nil {
		t.Error("the image's files are not all there")
	}
}

// unpacked returns the files of an archive, and checks what all entries must be like.
func unpacked(t *testing.T, file string) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	all := map[string][]byte{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(date) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || strings.Contains(h.Name, "..") {
			t.Errorf("%s in %s: %v, owner %d:%d %q", h.Name, filepath.Base(file), h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// The bill of materials lists the modules of the program, each once, and nothing refers to
// what it lacks.
func TestBill(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bill(program, "v1.2.3", "amd64", date)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{d.ID: true}
	var paths []string
	for _, p := range d.Packages {
		if ids[p.ID] {
			t.Errorf("two have the id %s", p.ID)
		}
		ids[p.ID] = true
		paths = append(paths, p.Name)
	}
	if !slices.Contains(paths, "stdlib") || d.Creation.Created != "2026-01-02T03:04:05Z" || d.Packages[0].Version != "v1.2.3" {
		t.Errorf("modules %q, made at %s, of version %s", paths, d.Creation.Created, d.Packages[0].Version)
	}
	if len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d relations of %d packages", len(d.Relationships), len(d.Packages))
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%s %s %s: one of them is not in the list", r.From, r.Kind, r.To)
		}
	}
	if _, err := bill("release_test.go", "v1.2.3", "amd64", date); err == nil {
		t.Error("a text has modules")
	}
}

// What is missing is named, with what to give.
func TestRefused(t *testing.T) {
	for epoch, r := range map[string]release{"": {version: "v1.2.3", nfpm: "nfpm"}, "now": {version: "v1.2.3", nfpm: "nfpm"}, "1": {version: "v1.2.3"}, "2": {nfpm: "nfpm"}} {
		if err := r.check(epoch); err == nil || !strings.HasPrefix(err.Error(), "-") {
			t.Errorf("-epoch %q of %v: %v", epoch, r, err)
		}
	}
}
