package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/node/api"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the golden files show times
	output.Clock = func() time.Time { return clitest.Then }
	os.Exit(m.Run())
}

// hopmesh runs a command line in this process.
func hopmesh(ctx context.Context, local Local, args ...string) (stdout, stderr string, code int) {
	var out, diag bytes.Buffer
	code = Execute(ctx, New(local, "v0.1.0"), args, &out, &diag)
	return out.String(), diag.String(), code
}

// echo is a Local that only shows what it was told.
func echo() Local {
	show := func(w io.Writer, what string, cfg any) error {
		_, err := fmt.Fprintf(w, "%s %+v\n", what, cfg)
		return err
	}
	return Local{
		Agent: func(_ context.Context, c AgentConfig, out, _ io.Writer) error { return show(out, "agent", c) },
		Demo:  func(_ context.Context, c DemoConfig, out, _ io.Writer) error { return show(out, "demo", c) },
		Bench: func(_ context.Context, c BenchConfig, out io.Writer) error { return show(out, "bench", c) },
		Doctor: func(_ context.Context, c DoctorConfig, out io.Writer) error {
			return errors.Join(show(out, "doctor", c), errors.New("something is wrong here"))
		},
		Recover: func(_ context.Context, c RecoverConfig, out io.Writer) error { return show(out, "recover", c) },
		Restore: func(_ context.Context, c RestoreConfig, out io.Writer) error { return show(out, "restore", c) },
		Options: func() []train.Option {
			return []train.Option{{Key: "model.head", Values: "none|linear", Default: "none", Help: "what follows the layers"}}
		},
		Strategies:   []string{"auto", "single", "centric", "leap", "p3", "grappa", "pipe", "graph", "local"},
		DemoStrategy: "leap",
		Parts:        []string{"bytes", "time", "kill"},
		ScaleParts:   []string{"memory", "back"},
	}
}

// Each file in testdata/golden shows one command: what it prints, and how it
// ends. -update writes them from what the program does now.
func TestGolden(t *testing.T) {
	run := func(ctx context.Context, args ...string) (string, string, int) { return hopmesh(ctx, echo(), args...) }
	sick := api.Status{Node: "alpha", Generation: 12, Members: 3, Problems: []string{
		"there is no leader: more than half of the 3 voters must be up", "not answering: beta, gamma",
	}}
	clitest.Golden(t, run, []clitest.Case{
		{File: "run", Args: "run testdata/train.py --hidden 64"},
		{File: "run-json", Args: "run --json --nodes 2 --run night testdata/train.py"},
		{File: "run-failed", Args: "run testdata/train.py", With: func(b *clitest.Backend) {
			b.Err = api.NewError(422, "the script beside n1 ended with exit code 3: ValueError: no")
		}},
		{File: "run-nodes", Args: "run --nodes some testdata/train.py"},
		{File: "run-no-script", Args: "run"},
		{File: "run-no-file", Args: "run testdata/nothing.py"},
		{File: "run-word", Args: "run --run a/b testdata/train.py"},
		{File: "members", Args: "members"},
		{File: "members-json", Args: "members --json"},
		{File: "members-none", Args: "members", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "members-none-json", Args: "members --json", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "members-no-mesh", Args: "members --json", With: func(b *clitest.Backend) { b.Err = api.Unavailable("this node is in no mesh") }},
		{File: "status", Args: "status"},
		{File: "status-json", Args: "status --json"},
		{File: "status-problems", Args: "status", With: func(b *clitest.Backend) { b.Self.Problems = []string{"not answering: gamma"} }},
		{File: "status-not-ready", Args: "status", With: func(b *clitest.Backend) { b.Self = sick }},
		{File: "status-not-ready-json", Args: "status --json", With: func(b *clitest.Backend) { b.Self = sick }},
		{File: "status-unexplained", Args: "status", With: func(b *clitest.Backend) { b.Self.Ready = false }},
		{File: "join", Args: "join 10.0.0.2:7946 10.0.0.3:7946 --token hm1-abc", With: func(b *clitest.Backend) { b.Unready = 2 }},
		{File: "join-json", Args: "join 10.0.0.2:7946 --token hm1-abc --json"},
		{File: "join-refused", Args: "join 10.0.0.2:7946 --token hm1-abc", With: func(b *clitest.Backend) { b.Err = api.Conflict("10.0.0.2:7946 refused the token: it has expired") }},
		{File: "join-no-token", Args: "join 10.0.0.2:7946"},
		{File: "join-no-peer", Args: "join --token hm1-abc"},
		{File: "leave", Args: "leave"},
		{File: "leave-json", Args: "leave --json"},
		{File: "leave-refused", Args: "leave", With: func(b *clitest.Backend) { b.Err = api.Conflict("this is the last node of its mesh") }},
		{File: "force-leave", Args: "force-leave gamma"},
		{File: "force-leave-revoke", Args: "force-leave gamma --revoke"},
		{File: "force-leave-revoke-voter", Args: "force-leave beta --revoke"},
		{File: "force-leave-json", Args: "force-leave gamma --json"},
		{File: "force-leave-unknown", Args: "force-leave omega", With: func(b *clitest.Backend) { b.Err = api.NotFound("no node is called omega") }},
		{File: "force-leave-control", Args: "force-leave omega", With: func(b *clitest.Backend) { b.Err = errors.New("read N.npz: \x1b]0;owned\x07y: damaged\nsecond line") }},
		{File: "force-leave-nobody", Args: "force-leave"},
		{File: "api-token-create", Args: "api token create --scope read"},
		{File: "api-token-create-json", Args: "api token create --scope operate --name ci --expires 24h --json"},
		{File: "api-token-create-no-scope", Args: "api token create"},
		{File: "api-token-create-scope", Args: "api token create --scope admin"},
		{File: "api-token-create-past", Args: "api token create --scope read --expires -1h"},
		{File: "api-token-list", Args: "api token list"},
		{File: "api-token-list-json", Args: "api token list --json"},
		{File: "api-token-revoke", Args: "api token revoke 5f9a01c2d4e5"},
		{File: "api-token-file-plain", Args: "members --addr 127.0.0.1:1 --api-token-file /nonexistent/t"},
		{File: "api-token-file-none", Args: "members --addr https://127.0.0.1:1 --api-token-file /nonexistent/t"},
		{File: "api-token-missing", Args: "members --addr https://127.0.0.1:1"},
		{File: "token-create", Args: "token create"},
		{File: "token-create-forever", Args: "token create --ttl 0"},
		{File: "token-create-json", Args: "token create --ttl 1h --json"},
		{File: "token-create-uses", Args: "token create --uses 3"},
		{File: "token-create-no-uses", Args: "token create --uses 0"},
		{File: "force-leave-revoke-json", Args: "force-leave gamma --revoke --json"},
		{File: "force-leave-revoke-no-tokens", Args: "force-leave gamma --revoke", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "token-create-ttl", Args: "token create --ttl 1y"},
		{File: "token-create-negative", Args: "token create --ttl -1h"},
		{File: "token-list", Args: "token list"},
		{File: "token-list-json", Args: "token list --json"},
		{File: "token-revoke", Args: "token revoke 3f9a01c2d4e5"},
		{File: "token-revoke-json", Args: "token revoke 3f9a01c2d4e5 --json"},
		{File: "ca-show", Args: "ca show", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "ca-show-replacing", Args: "ca show"},
		{File: "ca-show-json", Args: "ca show --json"},
		{File: "ca-rotate", Args: "ca rotate", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "ca-rotate-no-wait", Args: "ca rotate --wait 0 --json"},
		{File: "ca-rotate-refused", Args: "ca rotate", With: func(b *clitest.Backend) {
			b.Err = api.Conflict("the CA is being replaced already: `hopmesh ca show` says which nodes that waits for")
		}},
		{File: "ca-rotate-negative", Args: "ca rotate --wait -1m"},
		{File: "help-ca-rotate", Args: "help ca rotate"},
		{File: "token-no-verb", Args: "token"},
		{File: "help-dataset", Args: "help dataset"},
		{File: "help-dataset-import", Args: "help dataset import"},
		{File: "help-dataset-generate", Args: "help dataset generate"},
		{File: "help-dataset-list", Args: "help dataset list"},
		{File: "help-dataset-show", Args: "help dataset show"},
		{File: "help-dataset-verify", Args: "help dataset verify"},
		{File: "help-dataset-remove", Args: "help dataset remove"},
		{File: "dataset-import", Args: "dataset import cora /graphs/cora.npz --replicas 2 --memory 8GiB"},
		{File: "dataset-import-json", Args: "dataset import cora /graphs/cora.npz --json"},
		{File: "dataset-import-refused", Args: "dataset import cora /graphs/cora.npz", With: func(b *clitest.Backend) { b.Err = api.Conflict("there is a dataset called cora") }},
		{File: "dataset-import-failed", Args: "dataset import cora /graphs/cora.npz", With: func(b *clitest.Backend) {
			b.Err = api.Invalid("/graphs/cora.npz: row 7 of the labels holds 9, but there are 7 classes")
			b.Midway = true
		}},
		{File: "dataset-import-nothing", Args: "dataset import"},
		{File: "dataset-import-no-source", Args: "dataset import cora"},
		{File: "dataset-import-known", Args: "dataset import ogbn-products"},
		{File: "dataset-import-known-failed", Args: "dataset import ogbn-arxiv", With: func(b *clitest.Backend) { b.Err = api.Unavailable("snap.stanford.edu can't be reached") }},
		{File: "dataset-import-papers", Args: "dataset import ogbn-papers100M"},
		{File: "dataset-import-several", Args: "dataset import cora a.npz b.npz"},
		{File: "dataset-import-format", Args: "dataset import cora a.npz --format xls"},
		{File: "dataset-import-partitioner", Args: "dataset import cora a.npz --partitioner metis"},
		{File: "dataset-import-dtype", Args: "dataset import cora a.npz --dtype f16"},
		{File: "dataset-import-shards", Args: "dataset import cora a.npz --shards 2000"},
		{File: "dataset-import-no-shards", Args: "dataset import cora a.npz --shards 0"},
		{File: "dataset-import-replicas", Args: "dataset import cora a.npz --replicas -1"},
		{File: "dataset-import-memory", Args: "dataset import cora a.npz --memory much"},
		{File: "dataset-import-seed", Args: "dataset import cora a.npz --seed -1"},
		{File: "dataset-import-name", Args: "dataset import a/b a.npz"},
		{File: "dataset-generate", Args: "dataset generate cora --kind sbm --vertices 2708 --edges 10556"},
		{File: "dataset-generate-json", Args: "dataset generate cora --preset arxiv --scale 0.1 --json"},
		{File: "dataset-generate-nothing", Args: "dataset generate cora"},
		{File: "dataset-generate-no-name", Args: "dataset generate --preset arxiv"},
		{File: "dataset-generate-both", Args: "dataset generate cora --kind rmat --preset arxiv"},
		{File: "dataset-generate-kind", Args: "dataset generate cora --kind grid --vertices 9 --edges 9"},
		{File: "dataset-generate-preset", Args: "dataset generate cora --preset citeseer"},
		{File: "dataset-generate-no-vertices", Args: "dataset generate cora --kind rmat --edges 9"},
		{File: "dataset-generate-no-edges", Args: "dataset generate cora --kind rmat --vertices 9"},
		{File: "dataset-generate-preset-edges", Args: "dataset generate cora --preset arxiv --edges 9"},
		{File: "dataset-generate-scale", Args: "dataset generate cora --kind rmat --vertices 9 --edges 9 --scale 2"},
		{File: "dataset-generate-scale-zero", Args: "dataset generate cora --preset arxiv --scale 0"},
		{File: "dataset-generate-scale-word", Args: "dataset generate cora --preset arxiv --scale half"},
		{File: "dataset-generate-inside", Args: "dataset generate cora --kind sbm --vertices 9 --edges 9 --inside 80"},
		{File: "dataset-generate-homophily", Args: "dataset generate cora --kind sbm --vertices 9 --edges 9 --homophily 0"},
		{File: "dataset-list", Args: "dataset list"},
		{File: "dataset-list-json", Args: "dataset list --json"},
		{File: "dataset-list-none", Args: "dataset list", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "dataset-list-none-json", Args: "dataset list --json", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "dataset-show", Args: "dataset show cora"},
		{File: "dataset-show-shards", Args: "dataset show cora --shards"},
		{File: "dataset-show-json", Args: "dataset show cora --json"},
		{File: "dataset-show-importing", Args: "dataset show cora", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "dataset-show-unknown", Args: "dataset show citeseer", With: func(b *clitest.Backend) { b.Err = api.NotFound("there is no dataset called citeseer") }},
		{File: "dataset-show-nothing", Args: "dataset show"},
		{File: "dataset-verify", Args: "dataset verify cora"},
		{File: "dataset-verify-json", Args: "dataset verify cora --json"},
		{File: "dataset-verify-damaged", Args: "dataset verify cora --json", With: func(b *clitest.Backend) {
			b.Err = api.Conflict("shard 3 on beta is damaged: it is being fetched from alpha")
			b.Midway = true
		}},
		{File: "dataset-remove", Args: "dataset remove cora"},
		{File: "dataset-remove-json", Args: "dataset remove cora --json"},
		{File: "dataset-remove-unknown", Args: "dataset remove citeseer", With: func(b *clitest.Backend) { b.Err = api.NotFound("there is no dataset called citeseer") }},
		{File: "dataset-remove-force", Args: "dataset remove cora --force"},
		{File: "dataset-remove-needed", Args: "dataset remove cora", With: func(b *clitest.Backend) {
			b.Err = api.Conflict("job j7 needs dataset cora to predict or to go on: remove what is of no more use with `hopmesh train remove j7`")
		}},
		{File: "dataset-no-verb", Args: "dataset"},
		{File: "status-training", Args: "status", With: func(b *clitest.Backend) { b.Self.Training, b.Self.Jobs = clitest.Jobs()[1:2], 1 }},
		{File: "plan-show-jobs", Args: "plan show", With: func(b *clitest.Backend) { b.PlanJobs = clitest.Jobs() }},
		{File: "plan-show-shared", Args: "plan show", With: func(b *clitest.Backend) { b.PlanJobs = clitest.SharedJobs() }},
		{File: "plan-show-shared-json", Args: "plan show --json", With: func(b *clitest.Backend) { b.PlanJobs = clitest.SharedJobs() }},
		{File: "plan-show", Args: "plan show"},
		{File: "plan-show-job", Args: "plan show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "plan-show-job-json", Args: "plan show j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "plan-show-job-none", Args: "plan show j7"},
		{File: "plan-show-two", Args: "plan show j7 j8"},
		{File: "plan-show-json", Args: "plan show --json"},
		{File: "plan-show-empty-json", Args: "plan show --json", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "monitor", Args: "monitor"},
		{File: "monitor-json", Args: "monitor --json --level debug"},
		{File: "monitor-level", Args: "monitor --level loud"},
		{File: "demo", Args: "demo"},
		{File: "demo-options", Args: "demo --nodes 5 --json"},
		{File: "demo-none", Args: "demo --nodes 0"},
		{File: "demo-no-number", Args: "demo --nodes many"},
		{File: "bench-transport", Args: "bench transport --json"},
		{File: "bench-unknown", Args: "bench transprt"},
		{File: "help-bench", Args: "help bench"},
		{File: "help-bench-strategies", Args: "help bench strategies"},
		{File: "bench-strategies", Args: "bench strategies --plot ladder.svg --json"},
		{File: "bench-strategies-only", Args: "bench strategies --only kill,bytes --nodes 3"},
		{File: "bench-strategies-only-unknown", Args: "bench strategies --only bytes,speed"},
		{File: "bench-strategies-only-plot", Args: "bench strategies --only bytes --plot ladder.svg"},
		{File: "bench-strategies-pipe", Args: "bench strategies --only kill --plot-pipe pipe.svg"},
		{File: "help-bench-scale", Args: "help bench scale"},
		{File: "bench-scale", Args: "bench scale --only memory,back --rows leap,pipe --quick"},
		{File: "bench-scale-unknown", Args: "bench scale --only speed"},
		{File: "bench-strategies-alone", Args: "bench strategies --nodes 1"},
		{File: "doctor", Args: "doctor"},
		{File: "doctor-peer", Args: "doctor 10.0.0.1:7946 --json --listen 10.0.0.9:7946"},
		{File: "recover", Args: "recover --data-dir /srv/hopmesh --voters voters.txt"},
		{File: "recover-no-voters", Args: "recover --data-dir /srv/hopmesh"},
		{File: "recover-no-dir", Args: "recover --voters voters.txt"},
		{File: "help-backup", Args: "help backup"},
		{File: "help-restore", Args: "help restore"},
		{File: "backup-nothing", Args: "backup"},
		{File: "backup-folder", Args: "backup /"},
		{File: "backup-no-folder", Args: "backup /nonexistent/mesh.tar"},
		{File: "restore", Args: "restore mesh.tar --data-dir /srv/hopmesh"},
		{File: "restore-nothing", Args: "restore --data-dir /srv/hopmesh"},
		{File: "restore-no-dir", Args: "restore mesh.tar"},
		{File: "help", Args: ""},
		{File: "help-token", Args: "help token create"},
		{File: "help-unknown", Args: "help tokn"},
		{File: "unknown-command", Args: "membrs --json"},
		{File: "unknown-verb", Args: "token crate"},
		{File: "unknown-flag", Args: "members --jsn"},
		{File: "unknown-short-flag", Args: "members -q"},
		{File: "flag-without-value", Args: "token create --ttl"},
		{File: "argument-too-many", Args: "members alpha"},
		{File: "completion-unknown", Args: "completion tcsh"},
		{File: "version-flag", Args: "--version"},
		{File: "wrong-address", Args: "members --addr localhost"},
		{File: "no-daemon", Args: "members --addr unix:/nonexistent/hopmesh.sock"},
	})
}
