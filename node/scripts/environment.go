package scripts

import (
	"slices"
	"strings"
)

// The variables of this process that scripts are given. Others stay here, since another user of the
// mesh may have sent the script: they hold credentials of clouds, settings of the agent, and whatever
// else. So a name is added here only if nobody keeps a secret under it.
var (
	passedNames = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX",
		"XDG_CACHE_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "TORCH_HOME", "HF_HOME",
		"NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	}
	passedPrefixes = []string{"LC_", "PYTHON", "PYTORCH_", "CUDA_", "NCCL_", "OMP_", "MKL_", "KMP_", "OPENBLAS_"}
)

// passed returns those of an environment's variables that scripts are given.
func passed(all []string) (some []string) {
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			some = append(some, v)
		}
	}
	return some
}
