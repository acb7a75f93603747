//go:build packages

package packaging

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// helm runs helm, and returns what it prints.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "HELM"), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// rendered returns the manifests of the chart that was released.
func rendered(t *testing.T, args ...string) string {
	t.Helper()
	out, err := helm(t, slices.Concat([]string{"template", "mesh", released(t, "hopmesh-*.tgz"), "--namespace", "gnn"}, args)...)
	if err != nil {
		t.Fatalf("helm template %q: %v:\n%s", args, err, out)
	}
	return out
}

// manifest returns the manifest of one kind, without comments.
func manifest(t *testing.T, all, kind string) string {
	t.Helper()
	for text := range strings.SplitSeq(all, "\n---\n") {
		if strings.Contains(text, "\nkind: "+kind+"\n") {
			return regexp.MustCompile(`(?m)^ *#.*\n`).ReplaceAllString(text, "")
		}
	}
	t.Fatalf("there is no %s:\n%s", kind, all)
	return ""
}

// has checks that a manifest has these parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("lacks %q:\n%s", part, text)
		}
	}
}

// helm finds no fault with the chart, and its manifests have what a node needs to find the
// others, to be asked how it is, and to be nobody.
func TestChart(t *testing.T) {
	if out, err := helm(t, "lint", "--strict", "helm/hopmesh"); err != nil {
		t.Errorf("helm lint: %v:\n%s", err, out)
	}
	all := rendered(t, "--set", "port=7000", "--set", "metricsPort=7001", "--set", "storage.className=fast", "--set", "storage.size=5Gi", "--set", "image.repository=images/hopmesh")
	service := manifest(t, all, "Service")
	has(t, service, "clusterIP: None\n", "publishNotReadyAddresses: true\n", "port: 7000, protocol: UDP", "port: 7001, protocol: TCP")
	budget := manifest(t, all, "PodDisruptionBudget")
	has(t, budget, "maxUnavailable: 1\n")
	set := manifest(t, all, "StatefulSet")
	has(t, set, "serviceName: mesh-hopmesh\n", "replicas: 3\n", "enableServiceLinks: false\n", "automountServiceAccountToken: false\n",
		"runAsNonRoot: true\n", "runAsUser: 65532\n", "allowPrivilegeEscalation: false\n", "readOnlyRootFilesystem: true\n", "capabilities: {drop: [ALL]}\n",
		"livenessProbe:\n            httpGet: {path: /healthz, port: metrics}\n", "readinessProbe:\n            httpGet: {path: /readyz, port: metrics}\n",
		"{name: mesh, containerPort: 7000, protocol: UDP}", "{name: metrics, containerPort: 7001, protocol: TCP}",
		"--listen=0.0.0.0:7000\n", "--advertise=$(POD_IP):7000\n", "--api=0.0.0.0:7001\n", "--config=/etc/hopmesh/$(POD_NAME).toml\n",
		"secretName: mesh-hopmesh-join\n", "optional: true\n", "storageClassName: \"fast\"\n", "storage: 5Gi\n", "image: \"images/hopmesh:0.0.0-", "resources:\n            limits:\n              memory: 2Gi\n")
	if strings.Contains(set, "+") {
		t.Errorf("no tag of an image and no label has a +:\n%s", set)
	}
	for _, text := range []string{service, budget, set} {
		has(t, text, "app.kubernetes.io/instance: mesh\n", "app.kubernetes.io/name: hopmesh\n")
	}
	for name, args := range map[string][]string{
		"no replicas":     {"--set", "replicas=0"},
		"a port too high": {"--set", "port=70000"},
		"a wrong key":     {"--set", "replica=3"},
		"no image":        {"--set", "image.repository="},
	} {
		if out, err := helm(t, slices.Concat([]string{"template", "mesh", "helm/hopmesh"}, args)...); err == nil || !strings.Contains(out, "values don't meet the specifications") {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
	if text := rendered(t, "--set", "podDisruptionBudget.enabled=false"); strings.Contains(text, "PodDisruptionBudget") {
		t.Error("the budget can't be left out")
	}
	has(t, rendered(t, "--set", "join.secret=mine"), "secretName: mine\n")
	// Without a cluster helm renders no notes: they are rendered as a manifest.
	copied := filepath.Join(t.TempDir(), "hopmesh")
	if err := os.CopyFS(copied, os.DirFS("helm/hopmesh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(copied, "templates", "NOTES.txt"), filepath.Join(copied, "templates", "notes.yaml")); err != nil {
		t.Fatal(err)
	}
	notes, _ := helm(t, "template", "mesh", copied, "--namespace", "gnn", "--show-only", "templates/notes.yaml", "--debug")
	has(t, notes, "kubectl -n gnn exec mesh-hopmesh-0 -- hopmesh token create --uses 2 --json", "kubectl -n gnn create secret generic mesh-hopmesh-join --from-literal=token=\"$token\"", "--set bootstrap=false")
	first := settings(t, rendered(t, "--set", "bootstrap=false"))["mesh-hopmesh-0"]
	has(t, first, "token-file = \"/run/hopmesh/token\"\n", "\"mesh-hopmesh-2.mesh-hopmesh:7946\"")
	if strings.Contains(first, "bootstrap") || strings.Contains(first, "mesh-hopmesh-0.mesh") {
		t.Errorf("the first pod founds a mesh, or asks itself:\n%s", first)
	}
}

// settings returns the TOML files of a rendered chart by pod.
func settings(t *testing.T, all string) map[string]string {
	t.Helper()
	files := map[string]string{}
	_, data, _ := strings.Cut(manifest(t, all, "ConfigMap"), "\ndata:\n")
	name := ""
	for line := range strings.Lines(data + "\n") {
		if pod, ok := strings.CutSuffix(strings.TrimSpace(line), ".toml: |"); ok {
			name = pod
		} else if name != "" {
			files[name] += strings.TrimPrefix(line, "    ")
		}
	}
	return files
}

// arguments returns those of the container, for one pod.
func arguments(t *testing.T, all, pod, ip string) []string {
	t.Helper()
	_, list, _ := strings.Cut(manifest(t, all, "StatefulSet"), "          args:\n")
	var args []string
	for line := range strings.Lines(list) {
		arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			return args
		}
		args = append(args, strings.NewReplacer("$(POD_NAME)", pod, "$(POD_IP)", ip).Replace(arg))
	}
	return args
}

// The pods' own commands and settings make one mesh: the first founds it and the others
// join it by the token, each in a network namespace of its own, under the names that the
// headless service gives them.
func TestPodsFormAMesh(t *testing.T) {
	r := newRoot(t)
	r.run(t, "dpkg", "--install", deb(t, r))
	all := rendered(t, "--set", "replicas=2", "--set", "port=7000")
	files := settings(t, all)
	if len(files) != 2 {
		t.Fatalf("settings of %d pods: %v", len(files), files)
	}
	ip := map[string]string{"mesh-hopmesh-0": "10.77.0.1", "mesh-hopmesh-1": "10.77.0.2"}
	hosts := "127.0.0.1 localhost\n"
	for pod, address := range ip {
		hosts += address + " " + pod + ".mesh-hopmesh\n"
		r.write(t, "/etc/hopmesh/"+pod+".toml", files[pod])
	}
	_ = os.Remove(r.path("/etc/hosts"))
	r.write(t, "/etc/hosts", hosts)
	link := func(args ...string) {
		t.Helper()
		r.run(t, slices.Concat([]string{"ip"}, args)...)
	}
	for pod := range ip {
		link("netns", "add", pod)
		link("-n", pod, "link", "set", "lo", "up")
	}
	link("link", "add", "veth", "netns", "mesh-hopmesh-0", "type", "veth", "peer", "name", "veth", "netns", "mesh-hopmesh-1")
	for pod, address := range ip {
		link("-n", pod, "address", "add", address+"/24", "dev", "veth")
		link("-n", pod, "link", "set", "veth", "up")
	}
	// in returns a command of a pod, whose only writable folder is its volume.
	in := func(pod string, args ...string) *exec.Cmd {
		script := `mkdir -p /run/volumes/$1 /run/hopmesh && chown 65532:65532 /run/volumes/$1 &&
			mount --bind /run/volumes/$1 /var/lib/hopmesh && shift && exec setpriv --reuid=65532 --regid=65532 --clear-groups --inh-caps=-all --no-new-privs hopmesh "$@"`
		return r.command(t, slices.Concat([]string{"ip", "netns", "exec", pod, "sh", "-c", script, "sh", pod}, args)...)
	}
	status := func(pod string) func(context.Context) error {
		return func(context.Context) error {
			return in(pod, "status", "--addr", "unix:/var/lib/hopmesh/hopmesh.sock").Run()
		}
	}
	first := start(t, in("mesh-hopmesh-0", arguments(t, all, "mesh-hopmesh-0", ip["mesh-hopmesh-0"])...))
	first.ready(t, status("mesh-hopmesh-0"))
	// What waits for the Secret ends, and is started again.
	if out, err := in("mesh-hopmesh-1", arguments(t, all, "mesh-hopmesh-1", ip["mesh-hopmesh-1"])...).CombinedOutput(); err == nil || !strings.Contains(string(out), "/run/hopmesh/token") {
		t.Errorf("without the token: %v: %s", err, out)
	}
	out, err := in("mesh-hopmesh-0", "token", "create", "--uses", "1", "--json", "--addr", "unix:/var/lib/hopmesh/hopmesh.sock").Output()
	if err != nil {
		t.Fatal(err)
	}
	var token struct{ Token string }
	if err := json.Unmarshal(out, &token); err != nil {
		t.Fatal(err)
	}
	r.write(t, "/run/hopmesh/token", token.Token)
	second := start(t, in("mesh-hopmesh-1", arguments(t, all, "mesh-hopmesh-1", ip["mesh-hopmesh-1"])...))
	second.ready(t, status("mesh-hopmesh-1"))
	if out, err := in("mesh-hopmesh-1", "members", "--addr", "unix:/var/lib/hopmesh/hopmesh.sock").CombinedOutput(); err != nil || !strings.Contains(string(out), "10.77.0.1:7000") || !strings.Contains(string(out), "10.77.0.2:7000") {
		t.Errorf("members: %v: %s", err, out)
	}
	// What the probes ask for is served on the pod's address, and nothing else.
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/metrics": "hopmesh_ready 1", "/v1/members": "serves only"} {
		probe := r.run(t, "ip", "netns", "exec", "mesh-hopmesh-0", "bash", "-c", `exec 3<>/dev/tcp/10.77.0.2/7947 && printf 'GET %s HTTP/1.0\r\nHost: 10.77.0.2:7947\r\n\r\n' "$0" >&3 && cat <&3`, path)
		if !strings.Contains(probe, want) {
			t.Errorf("%s answers %q, want %q", path, probe, want)
		}
	}
	second.stop(t)
	first.stop(t)
}

// The image's archive has what its Dockerfile copies, for a user that is not root.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", released(t, "hopmesh_*_image.tar.gz"), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := read(t, filepath.Join(dir, "Dockerfile"))
	has(t, text, "\nFROM scratch\n", "\nUSER 65532:65532\n", "EXPOSE 7946/udp", "\nENTRYPOINT [\"/usr/bin/hopmesh\"]\n")
	copies := regexp.MustCompile(`(?m)^COPY (?:--\S+ )?(\S+) `).FindAllStringSubmatch(text, -1)
	if len(copies) != 3 {
		t.Errorf("%d files are copied", len(copies))
	}
	for _, c := range copies {
		for _, arch := range []string{"amd64", "arm64"} {
			if _, err := os.Stat(filepath.Join(dir, strings.ReplaceAll(c[1], "${TARGETARCH}", arch))); err != nil {
				t.Error(err)
			}
		}
	}
}
