//go:build packages

package packaging

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// query asks rpm of a package, whose digests it checks before.
func query(t *testing.T, file string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "rpm", slices.Concat([]string{"-qp"}, args, []string{file})...).Output()
	if err != nil {
		t.Fatalf("rpm -qp %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// The rpms have what the deb has, where rpm's systems look for it, are readable for
// everybody, keep the settings, and start and remove nothing.
func TestRPM(t *testing.T) {
	for _, arch := range []string{"x86_64", "aarch64"} {
		file := released(t, "hopmesh-*."+arch+".rpm")
		if out, err := exec.CommandContext(t.Context(), "rpm", "-K", "--nosignature", file).CombinedOutput(); err != nil {
			t.Errorf("rpm -K: %v: %s", err, out)
		}
		if got := query(t, file, "--qf", "%{NAME} %{ARCH} %{LICENSE} %{BUILDHOST}"); got != "hopmesh "+arch+" Apache-2.0 localhost" {
			t.Errorf("%s says it is %s", file, got)
		}
		files := query(t, file, "--qf", "[%{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]")
		for _, must := range []string{
			"-rwxr-xr-x root:root /usr/bin/hopmesh\n", "-rw-r--r-- root:root /usr/lib/systemd/system/hopmesh.service\n", "-rw-r--r-- root:root /usr/lib/sysctl.d/10-hopmesh.conf\n",
			"-rw-r--r-- root:root /etc/hopmesh/hopmesh.toml\n", "-rw-r--r-- root:root /usr/share/bash-completion/completions/hopmesh\n",
			"-rw-r--r-- root:root /usr/share/zsh/site-functions/_hopmesh\n", "-rw-r--r-- root:root /usr/share/fish/vendor_completions.d/hopmesh.fish\n",
			"-rw-r--r-- root:root /usr/share/man/man1/hopmesh-train-start.1.gz\n", "-rw-r--r-- root:root /usr/share/licenses/hopmesh/LICENSE\n",
		} {
			if !strings.Contains(files, must) {
				t.Errorf("the rpm for %s lacks %q:\n%s", arch, must, files)
			}
		}
		if got := query(t, file, "--configfiles"); got != "/etc/hopmesh/hopmesh.toml\n" {
			t.Errorf("settings that stay: %q", got)
		}
		if got := query(t, file, "--requires"); !strings.Contains(got, "shadow-utils\n") || strings.Contains(got, "libc") {
			t.Errorf("it needs:\n%s", got)
		}
		scripts := query(t, file, "--scripts")
		for _, must := range []string{"useradd --system", "-m 0700 -o hopmesh -g hopmesh /var/lib/hopmesh", `[ "$1" = 0 ]`} {
			if !strings.Contains(scripts, must) {
				t.Errorf("the scripts lack %q:\n%s", must, scripts)
			}
		}
		for line := range strings.Lines(scripts) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "rm ") || strings.Contains(line, "userdel") || strings.Contains(line, "systemctl") && !strings.HasPrefix(line, "echo") &&
				(strings.Contains(line, " start") || strings.Contains(line, " enable")) && !strings.Contains(line, `"  systemctl`) {
				t.Errorf("a script starts or removes something: %s", line)
			}
		}
	}
}
