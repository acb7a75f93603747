// Command release makes what a version is handed out as: archives, a deb and an rpm for
// each architecture, a Helm chart, what a container image is built from, lists of the
// modules in each program, and checksums of them all. The same commit gives the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// architectures are those that there are programs for.
var architectures = []string{"amd64", "arm64"}

func main() {
	r := release{}
	var epoch string
	flag.StringVar(&r.into, "into", "dist/release", "`FOLDER` for what is made; whatever it has is removed")
	flag.StringVar(&r.version, "version", "", "what the program says of itself, as `git describe` does")
	flag.StringVar(&epoch, "epoch", os.Getenv("SOURCE_DATE_EPOCH"), "`SECONDS` since 1970 that files are dated with")
	flag.StringVar(&r.nfpm, "nfpm", "", "`PROGRAM` that makes the deb and the rpm")
	flag.StringVar(&r.goes, "go", "go", "the `PROGRAM` go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.check(epoch)
	if err == nil {
		err = r.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version, and where it goes.
type release struct {
	into, version string
	names         names
	date          time.Time
	nfpm, goes    string
}

// check reads the settings that are not paths.
func (r *release) check(epoch string) (err error) {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return fmt.Errorf("-epoch is %q: give the seconds since 1970 of the commit, as `git log -1 --format=%%ct` prints them", epoch)
	}
	r.date = time.Unix(seconds, 0).UTC()
	if r.names, err = packaged(r.version, r.date); err != nil {
		return err
	}
	if r.nfpm == "" {
		return errors.New("-nfpm is empty: name the program that makes packages")
	}
	r.nfpm, err = filepath.Abs(r.nfpm)
	return err
}

func (r *release) run(ctx context.Context) error {
	if _, err := os.Stat("packaging/nfpm.yaml"); err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	if err := replaceable(r.into); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.into), os.MkdirAll(r.into, 0o755)); err != nil { //nolint:gosec // what is handed out is for everybody to read
		return fmt.Errorf("make the folder for what is released: %w", err)
	}
	stage, err := os.MkdirTemp("", "hopmesh-release")
	if err != nil {
		return fmt.Errorf("make a folder for what is packed: %w", err)
	}
	err = r.fill(ctx, stage)
	if err == nil {
		err = r.pack(ctx, stage)
	}
	return errors.Join(err, os.RemoveAll(stage))
}

// fill lays out all files of the packages below stage: those of one architecture in a
// folder of its name, those of all beside it.
func (r *release) fill(ctx context.Context, stage string) error {
	if !slices.Contains(architectures, runtime.GOARCH) {
		return fmt.Errorf("this machine is %s and runs none of the programs that are made, for %s: completions come from running one", runtime.GOARCH, strings.Join(architectures, " and "))
	}
	for _, arch := range architectures {
		program := filepath.Join(stage, arch, "hopmesh")
		cmd := exec.CommandContext(ctx, r.goes, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version, "-o", program, "./cli/hopmesh")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
		if err := run(cmd); err != nil {
			return fmt.Errorf("build for %s: %w", arch, err)
		}
	}
	pages := filepath.Join(stage, "pages")
	if err := run(exec.CommandContext(ctx, r.goes, "run", "./scripts/man", pages)); err != nil {
		return fmt.Errorf("make the manual pages: %w", err)
	}
	if err := compressAll(filepath.Join(pages, "*.1"), filepath.Join(stage, "man")); err != nil {
		return err
	}
	if err := r.completions(ctx, filepath.Join(stage, runtime.GOARCH, "hopmesh"), filepath.Join(stage, "completions")); err != nil {
		return err
	}
	for _, folder := range []string{"systemd", "deb", "rpm", "grafana", "prometheus", "helm", "image"} {
		if err := os.CopyFS(filepath.Join(stage, folder), os.DirFS(filepath.Join("packaging", folder))); err != nil {
			return fmt.Errorf("copy packaging/%s: %w", folder, err)
		}
	}
	for from, to := range map[string]string{"packaging/nfpm.yaml": "nfpm.yaml", "LICENSE": "LICENSE", "CHANGELOG.md": "CHANGELOG.md", "README.md": "README.md"} {
		if err := copyFile(from, filepath.Join(stage, to)); err != nil {
			return err
		}
	}
	if err := compressAll(filepath.Join(stage, "CHANGELOG.md"), stage); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(stage, "CHANGELOG.md.gz"), filepath.Join(stage, "changelog.gz")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "copyright"), []byte(copyright), 0o600)
}

// copyright is what Debian's packages have in place of LICENSE.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hopmesh

Files: *
Copyright: the hopmesh developers
License: Apache-2.0
 On Debian systems the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
 .
 The program contains other Go modules, each under a license of its own: the SPDX file
 beside the package lists them.
`

// completions writes what the program prints for each shell, under the names that the
// shells look for.
func (r *release) completions(ctx context.Context, program, into string) error {
	if err := os.MkdirAll(into, 0o700); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "hopmesh.bash", "zsh": "_hopmesh", "fish": "hopmesh.fish"} {
		out, err := exec.CommandContext(ctx, program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("print the completions for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(into, name), out, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command whose output says why it failed.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// replaceable returns an error unless a folder may be removed: it is absent or empty, or an earlier
// release.
func replaceable(folder string) error {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-into %s: %w", folder, err)
	}
	for _, e := range list {
		if e.Name() == sumsFile {
			return nil
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("-into %s has files that are no release, and all of it would be removed: name another folder", folder)
	}
	return nil
}
