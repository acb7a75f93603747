//go:build packages

package packaging

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// deb copies the package for this machine into a root, and returns its path there.
func deb(t *testing.T, r root) string {
	t.Helper()
	b, err := os.ReadFile(released(t, "hopmesh_*_"+runtime.GOARCH+".deb"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path("/hopmesh.deb"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return "/hopmesh.deb"
}

// traces lists whatever the package may leave behind, but its user.
func traces(t *testing.T, r root) []string {
	t.Helper()
	list := slices.Concat(r.files(t, "/etc/hopmesh"), r.files(t, "/var/lib/hopmesh"))
	for _, folder := range []string{"/usr/bin", "/usr/lib/systemd", "/etc/systemd", "/usr/lib/sysctl.d", "/usr/share/bash-completion", "/usr/share/zsh", "/usr/share/fish", "/usr/share/man/man1", "/usr/share/doc/hopmesh", "/var/lib/dpkg/info"} {
		for _, file := range r.files(t, folder) {
			if strings.Contains(file, "hopmesh") {
				list = append(list, file)
			}
		}
	}
	return list
}

// The deb installs all files for everybody to read and nobody but root to change, makes
// the user, and starts nothing. The daemon runs as the unit says. A removal leaves the
// settings and the data, a purge asks before it removes the data.
func TestDeb(t *testing.T) {
	r := newRoot(t)
	out := r.run(t, "dpkg", "--install", deb(t, r))
	if !strings.Contains(out, "not started") || !strings.Contains(out, "systemctl enable --now hopmesh") {
		t.Errorf("it does not say what to do next:\n%s", out)
	}
	if out := r.run(t, "dpkg", "--verify", "hopmesh"); out != "" {
		t.Errorf("dpkg misses: %s", out)
	}
	for file := range strings.Lines(r.run(t, "dpkg", "--listfiles", "hopmesh")) {
		file = strings.TrimSpace(file)
		info, err := os.Lstat(r.path(file))
		if err != nil {
			t.Error(err)
			continue
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 0 || s.Gid != 0 || info.Mode()&0o444 != 0o444 || info.Mode()&0o022 != 0 {
			t.Errorf("%s has mode %v and owner %d:%d", file, info.Mode(), s.Uid, s.Gid)
		}
	}
	if got := strings.TrimSpace(r.run(t, "stat", "--format", "%U:%G %a", "/var/lib/hopmesh")); got != "hopmesh:hopmesh 700" {
		t.Errorf("the data directory: %s", got)
	}
	if got := r.run(t, "getent", "passwd", "hopmesh"); !strings.HasSuffix(strings.TrimSpace(got), ":/var/lib/hopmesh:/usr/sbin/nologin") {
		t.Errorf("the user: %s", got)
	}
	if got := r.files(t, "/etc/systemd"); slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "hopmesh") }) {
		t.Error("the unit is enabled without being asked")
	}
	t.Run("unit", func(t *testing.T) { unit(t, r) })
	t.Run("shells", func(t *testing.T) { shells(t, r) })
	t.Run("pages", func(t *testing.T) { pages(t, r) })
	t.Run("daemon", func(t *testing.T) { runs(t, r) })
	t.Run("again", func(t *testing.T) {
		// Installed once more, as an upgrade does, it keeps settings that were changed.
		r.run(t, "dpkg", "--install", "/hopmesh.deb")
		if !strings.Contains(r.read(t, "/etc/hopmesh/hopmesh.toml"), "\nbootstrap = true\n") {
			t.Error("an upgrade takes back what was set")
		}
	})
	t.Run("remove", func(t *testing.T) {
		r.run(t, "dpkg", "--remove", "hopmesh")
		kept := traces(t, r)
		for _, must := range []string{"/etc/hopmesh/hopmesh.toml", "/var/lib/hopmesh/identity", "/var/lib/dpkg/info/hopmesh.postrm"} {
			if !slices.Contains(kept, must) {
				t.Errorf("a removal takes %s with it", must)
			}
		}
		for _, file := range kept {
			if !strings.HasPrefix(file, "/etc/hopmesh") && !strings.HasPrefix(file, "/var/lib/hopmesh") && !strings.HasPrefix(file, "/var/lib/dpkg/info/hopmesh.") {
				t.Errorf("a removal leaves %s", file)
			}
		}
	})
	t.Run("purge", func(t *testing.T) {
		// Nobody answers the question: the data stays.
		r.run(t, "dpkg", "--purge", "hopmesh")
		for _, file := range traces(t, r) {
			if !strings.HasPrefix(file, "/var/lib/hopmesh") {
				t.Errorf("a purge leaves %s", file)
			}
		}
		if !r.exists("/var/lib/hopmesh/identity") {
			t.Error("a purge removes the data unasked")
		}
		// The administrator says yes.
		r.run(t, "dpkg", "--install", "/hopmesh.deb")
		r.run(t, "sh", "-c", "echo 'hopmesh hopmesh/remove_data boolean true' | debconf-set-selections")
		r.run(t, "dpkg", "--purge", "hopmesh")
		if left := traces(t, r); len(left) != 0 {
			t.Errorf("a purge leaves %q", left)
		}
		if out := r.run(t, "sh", "-c", "echo get hopmesh/remove_data | debconf-communicate 2>&1 || true"); !strings.HasPrefix(out, "10") {
			t.Errorf("debconf still knows the question: %s", out)
		}
		// One that never ran leaves nothing, without a question.
		r.run(t, "dpkg", "--install", "/hopmesh.deb")
		r.run(t, "dpkg", "--purge", "hopmesh")
		if left := traces(t, r); len(left) != 0 {
			t.Errorf("a purge of what never ran leaves %q", left)
		}
	})
}

// unit has systemd check the unit, and how much it may do.
func unit(t *testing.T, r root) {
	const file = "/usr/lib/systemd/system/hopmesh.service"
	// Other units of this machine may have faults.
	out, err := r.try(t, "systemd-analyze", "verify", "--recursive-errors=no", "--man=yes", file)
	if err != nil || strings.Contains(out, "hopmesh") {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	// The threshold is ten times the exposure: 100 is a unit without limits.
	if out, err := r.try(t, "systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", file); err != nil {
		t.Errorf("it may do too much: %s", out)
	}
	if out := r.run(t, "sysctl", "--dry-run", "--load", "/usr/lib/sysctl.d/10-hopmesh.conf"); !strings.Contains(out, "net.core.rmem_max = ") {
		t.Errorf("sysctl reads: %s", out)
	}
}

// shells has each shell load its completions and use them.
func shells(t *testing.T, r root) {
	for shell, script := range map[string]string{
		"bash": `. /usr/share/bash-completion/bash_completion 2>/dev/null
			. /usr/share/bash-completion/completions/hopmesh && complete -p hopmesh
			COMP_WORDS=(hopmesh dat) COMP_CWORD=1 COMP_LINE="hopmesh dat" COMP_POINT=11
			_get_comp_words_by_ref() { cur=dat prev=hopmesh cword=1; words=(hopmesh dat); }
			__start_hopmesh; echo "${COMPREPLY[@]}"`,
		"zsh":  `autoload -Uz compinit && compinit -u -D && echo "$_comps[hopmesh]" && autoload -Uz +X _hopmesh && functions _hopmesh | grep -c __complete && hopmesh __complete dat`,
		"fish": `complete --do-complete "hopmesh dat"`,
	} {
		out, err := r.try(t, shell, "-c", script)
		if err != nil || !strings.Contains(out, "dataset") {
			t.Errorf("%s: %v:\n%s", shell, err, out)
		}
		if shell == "zsh" && !strings.Contains(out, "_hopmesh\n") {
			t.Errorf("zsh does not find the completions: %s", out)
		}
	}
}

// pages renders all manual pages: each has a name and says something, without a warning.
func pages(t *testing.T, r root) {
	list, err := filepath.Glob(r.path("/usr/share/man/man1/hopmesh*"))
	if err != nil || len(list) < 30 {
		t.Fatalf("%d pages, %v", len(list), err)
	}
	for _, page := range list {
		page = strings.TrimPrefix(page, r.dir)
		out := r.run(t, "man", "--warnings", "-l", "--pager=cat", page)
		if strings.Contains(out, "warning") && strings.Contains(out, "<standard input>") || !strings.Contains(out, "SYNOPSIS") {
			t.Errorf("%s:\n%s", page, out)
		}
	}
	if out := r.run(t, "man", "--pager=cat", "hopmesh-train-start"); !strings.Contains(out, "--strategy") {
		t.Errorf("man does not find the pages: %s", out)
	}
}

// setting returns what the unit has for a key.
func setting(t *testing.T, r root, key string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(r.read(t, "/usr/lib/systemd/system/hopmesh.service"))
	if found == nil {
		t.Fatalf("the unit has no %s", key)
	}
	return found[1]
}

// runs founds a mesh of one node by the unit's own command, as its user and without any
// capability.
func runs(t *testing.T, r root) {
	settings := r.read(t, "/etc/hopmesh/hopmesh.toml")
	for commented, own := range map[string]string{
		"#bootstrap = true\n": "bootstrap = true\n", `#listen = "0.0.0.0:7946"`: `listen = "127.0.0.1:0"`, `#name = "n1"`: `name = "n1"`,
	} {
		if !strings.Contains(settings, commented) {
			t.Fatalf("the settings lack %q", commented)
		}
		settings = strings.Replace(settings, commented, own, 1)
	}
	r.write(t, "/etc/hopmesh/hopmesh.toml", settings)
	user, group := setting(t, r, "User"), setting(t, r, "Group")
	as := []string{"setpriv", "--reuid=" + user, "--regid=" + group, "--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "sh", "-c", `umask "$1" && shift && exec "$@"`, "sh", setting(t, r, "UMask")}
	agent := r.command(t, append(as, strings.Fields(setting(t, r, "ExecStart"))...)...)
	d := start(t, agent)
	d.ready(t, func(ctx context.Context) error {
		return exec.CommandContext(ctx, "chroot", r.dir, "hopmesh", "status", "--addr", "unix:/var/lib/hopmesh/hopmesh.sock").Run()
	})
	// Root finds the daemon without being given its address.
	if out := r.run(t, "hopmesh", "members"); !strings.Contains(out, "n1") {
		t.Errorf("members: %s", out)
	}
	// Others don't reach it.
	if out, err := r.try(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "hopmesh", "status", "--addr", "unix:/var/lib/hopmesh/hopmesh.sock"); err == nil {
		t.Errorf("another user may use the daemon: %s", out)
	}
	if out := r.run(t, "find", "/var/lib/hopmesh", "(", "!", "-user", "hopmesh", "-o", "-perm", "/0077", ")", "!", "-type", "s"); out != "" {
		t.Errorf("others may read, or own: %s", out)
	}
	d.stop(t)
}
