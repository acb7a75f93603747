package scripts

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// Scripts are given what programs need, and nothing that may be a secret of the agent's user.
func TestScriptsHaveNoCredentials(t *testing.T) {
	secrets := []string{
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GS_OAUTH2_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "HOPMESH_TOKEN", "HF_TOKEN", "HTTPS_PROXY", "PATHS", "SSH_AUTH_SOCK",
	}
	needed := []string{"PATH", "HOME", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}
	for _, name := range slices.Concat(secrets, needed) {
		t.Setenv(name, "of-"+name)
	}
	script := func(_ context.Context, l launched) (int, error) {
		for _, v := range l.values {
			if name, _, _ := strings.Cut(v, "="); slices.Contains(secrets, name) {
				t.Errorf("the script is given %s", v)
			}
		}
		for _, name := range needed {
			if !slices.ContainsFunc(l.values, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
				t.Errorf("the script is not given %s", name)
			}
		}
		return 0, nil
	}
	inMesh(t, "a", script, func(t *testing.T, n *network, h *heard) {
		if _, err := n.nodes["a"].Start(t.Context(), request, h.tell); err != nil {
			t.Error(err)
		}
	})
}
