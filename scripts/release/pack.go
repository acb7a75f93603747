package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pack makes all that is released of the files below stage.
func (r *release) pack(ctx context.Context, stage string) error {
	for _, arch := range architectures {
		if err := r.archive(stage, arch); err != nil {
			return err
		}
		if err := r.packages(ctx, stage, arch); err != nil {
			return err
		}
		list, err := bill(filepath.Join(stage, arch, "hopmesh"), r.version, arch, r.date)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.into, r.file("_linux_"+arch+".spdx.json")), list, 0o644); err != nil { //nolint:gosec // what is handed out is for everybody to read
			return err
		}
	}
	if err := r.chart(stage); err != nil {
		return err
	}
	if err := r.image(stage); err != nil {
		return err
	}
	return sums(r.into)
}

// file returns the name of a file of this version.
func (r *release) file(rest string) string { return "hopmesh_" + r.names.pkg + rest }

// archive packs what a machine without dpkg and rpm needs, in one folder.
func (r *release) archive(stage, arch string) error {
	top := r.file("_linux_" + arch)
	list := []entry{{name: top + "/hopmesh", from: filepath.Join(stage, arch, "hopmesh"), mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		list = append(list, entry{name: top + "/" + name, from: filepath.Join(stage, name), mode: 0o644})
	}
	for _, folder := range []string{"completions", "man", "systemd", "grafana", "prometheus"} {
		files, err := below(filepath.Join(stage, folder), top+"/"+folder)
		if err != nil {
			return err
		}
		list = append(list, files...)
	}
	return writeArchive(filepath.Join(r.into, top+".tar.gz"), list, r.date)
}

// packages has nfpm make the deb and the rpm.
func (r *release) packages(ctx context.Context, stage, arch string) error {
	into, err := filepath.Abs(r.into)
	if err != nil {
		return err
	}
	program := filepath.Join(stage, "hopmesh")
	if err := copyFile(filepath.Join(stage, arch, "hopmesh"), program); err != nil {
		return err
	}
	defer os.Remove(program)
	rpmArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	for kind, name := range map[string]string{"deb": r.file("_" + arch + ".deb"), "rpm": "hopmesh-" + r.names.pkg + "." + rpmArch + ".rpm"} {
		cmd := exec.CommandContext(ctx, r.nfpm, "package", "--config", "nfpm.yaml", "--packager", kind, "--target", filepath.Join(into, name))
		cmd.Dir = stage
		cmd.Env = append(os.Environ(), "ARCH="+arch, "PACKAGE_VERSION="+r.names.pkg, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()))
		if err := run(cmd); err != nil {
			return fmt.Errorf("make the %s for %s: %w", kind, arch, err)
		}
	}
	return nil
}

// chart packs the Helm chart, with this version as its own and the program's.
func (r *release) chart(stage string) error {
	dir := filepath.Join(stage, "helm", "hopmesh")
	list, err := below(dir, "hopmesh")
	if err != nil {
		return err
	}
	for i, e := range list {
		if e.name != "hopmesh/Chart.yaml" {
			continue
		}
		b, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		for _, key := range []string{"version", "appVersion"} {
			line := []byte("\n" + key + `: "0.0.0"` + "\n")
			if !bytes.Contains(b, line) {
				return fmt.Errorf("packaging/helm/hopmesh/Chart.yaml has no line %q to put the version into", bytes.TrimSpace(line))
			}
			b = bytes.Replace(b, line, fmt.Appendf(nil, "\n%s: %q\n", key, r.names.semantic), 1)
		}
		list[i].data = b
	}
	return writeArchive(filepath.Join(r.into, "hopmesh-"+r.names.semantic+".tgz"), list, r.date)
}

// image packs the Dockerfile with all that it copies.
func (r *release) image(stage string) error {
	list := []entry{{name: "Dockerfile", from: filepath.Join(stage, "image", "Dockerfile"), mode: 0o644}, {name: "data/", mode: 0o700}}
	for _, arch := range architectures {
		list = append(list, entry{name: "linux-" + arch + "/hopmesh", from: filepath.Join(stage, arch, "hopmesh"), mode: 0o755})
	}
	return writeArchive(filepath.Join(r.into, r.file("_image.tar.gz")), list, r.date)
}

const sumsFile = "SHA256SUMS"

// sums writes sumsFile, which sha256sum -c checks.
func sums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(b), f.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(strings.Join(lines, "")), 0o644) //nolint:gosec // what is handed out is for everybody to read
}
