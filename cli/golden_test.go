package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // the golden files show times
	clock = func() time.Time { return then }
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
		Options: someOptions,
		Parts:   []string{"bytes", "time", "kill"},
	}
}

// Each file in testdata/golden shows one command: what it prints, and how it
// ends. -update writes them from what the program does now.
func TestGolden(t *testing.T) {
	sick := api.Status{Node: "alpha", Generation: 12, Members: 3, Problems: []string{
		"there is no leader: more than half of the 3 voters must be up", "not answering: beta, gamma",
	}}
	for _, c := range []struct {
		file string
		args string
		with func(*backend)
	}{
		{file: "members", args: "members"},
		{file: "members-json", args: "members --json"},
		{file: "members-none", args: "members", with: func(b *backend) { b.empty = true }},
		{file: "members-none-json", args: "members --json", with: func(b *backend) { b.empty = true }},
		{file: "members-no-mesh", args: "members --json", with: func(b *backend) { b.err = api.Unavailable("this node is in no mesh") }},
		{file: "status", args: "status"},
		{file: "status-json", args: "status --json"},
		{file: "status-problems", args: "status", with: func(b *backend) { b.status.Problems = []string{"not answering: gamma"} }},
		{file: "status-not-ready", args: "status", with: func(b *backend) { b.status = sick }},
		{file: "status-not-ready-json", args: "status --json", with: func(b *backend) { b.status = sick }},
		{file: "status-unexplained", args: "status", with: func(b *backend) { b.status.Ready = false }},
		{file: "join", args: "join 10.0.0.2:7946 10.0.0.3:7946 --token hm1-abc", with: func(b *backend) { b.unready = 2 }},
		{file: "join-json", args: "join 10.0.0.2:7946 --token hm1-abc --json"},
		{file: "join-refused", args: "join 10.0.0.2:7946 --token hm1-abc", with: func(b *backend) { b.err = api.Conflict("10.0.0.2:7946 refused the token: it has expired") }},
		{file: "join-no-token", args: "join 10.0.0.2:7946"},
		{file: "join-no-peer", args: "join --token hm1-abc"},
		{file: "leave", args: "leave"},
		{file: "leave-json", args: "leave --json"},
		{file: "leave-refused", args: "leave", with: func(b *backend) { b.err = api.Conflict("this is the last node of its mesh") }},
		{file: "force-leave", args: "force-leave gamma"},
		{file: "force-leave-revoke", args: "force-leave gamma --revoke"},
		{file: "force-leave-json", args: "force-leave gamma --json"},
		{file: "force-leave-unknown", args: "force-leave omega", with: func(b *backend) { b.err = api.NotFound("no node is called omega") }},
		{file: "force-leave-nobody", args: "force-leave"},
		{file: "token-create", args: "token create"},
		{file: "token-create-forever", args: "token create --ttl 0"},
		{file: "token-create-json", args: "token create --ttl 1h --json"},
		{file: "token-create-ttl", args: "token create --ttl 1y"},
		{file: "token-create-negative", args: "token create --ttl -1h"},
		{file: "token-list", args: "token list"},
		{file: "token-list-json", args: "token list --json"},
		{file: "token-revoke", args: "token revoke 3f9a01c2d4e5"},
		{file: "token-revoke-json", args: "token revoke 3f9a01c2d4e5 --json"},
		{file: "token-no-verb", args: "token"},
		{file: "help-dataset", args: "help dataset"},
		{file: "help-dataset-import", args: "help dataset import"},
		{file: "help-dataset-generate", args: "help dataset generate"},
		{file: "help-dataset-list", args: "help dataset list"},
		{file: "help-dataset-show", args: "help dataset show"},
		{file: "help-dataset-verify", args: "help dataset verify"},
		{file: "help-dataset-remove", args: "help dataset remove"},
		{file: "dataset-import", args: "dataset import cora /graphs/cora.npz --replicas 2 --memory 8GiB"},
		{file: "dataset-import-json", args: "dataset import cora /graphs/cora.npz --json"},
		{file: "dataset-import-refused", args: "dataset import cora /graphs/cora.npz", with: func(b *backend) { b.err = api.Conflict("there is a dataset called cora") }},
		{file: "dataset-import-failed", args: "dataset import cora /graphs/cora.npz", with: func(b *backend) {
			b.err = api.Invalid("/graphs/cora.npz: row 7 of the labels holds 9, but there are 7 classes")
			b.midway = true
		}},
		{file: "dataset-import-nothing", args: "dataset import"},
		{file: "dataset-import-no-source", args: "dataset import cora"},
		{file: "dataset-import-too-many", args: "dataset import cora a.npz b.npz"},
		{file: "dataset-import-format", args: "dataset import cora a.npz --format xls"},
		{file: "dataset-import-partitioner", args: "dataset import cora a.npz --partitioner metis"},
		{file: "dataset-import-dtype", args: "dataset import cora a.npz --dtype f16"},
		{file: "dataset-import-shards", args: "dataset import cora a.npz --shards 2000"},
		{file: "dataset-import-no-shards", args: "dataset import cora a.npz --shards 0"},
		{file: "dataset-import-replicas", args: "dataset import cora a.npz --replicas -1"},
		{file: "dataset-import-memory", args: "dataset import cora a.npz --memory much"},
		{file: "dataset-import-seed", args: "dataset import cora a.npz --seed -1"},
		{file: "dataset-import-name", args: "dataset import a/b a.npz"},
		{file: "dataset-generate", args: "dataset generate cora --kind sbm --vertices 2708 --edges 10556"},
		{file: "dataset-generate-json", args: "dataset generate cora --preset arxiv --scale 0.1 --json"},
		{file: "dataset-generate-nothing", args: "dataset generate cora"},
		{file: "dataset-generate-no-name", args: "dataset generate --preset arxiv"},
		{file: "dataset-generate-both", args: "dataset generate cora --kind rmat --preset arxiv"},
		{file: "dataset-generate-kind", args: "dataset generate cora --kind grid --vertices 9 --edges 9"},
		{file: "dataset-generate-preset", args: "dataset generate cora --preset citeseer"},
		{file: "dataset-generate-no-vertices", args: "dataset generate cora --kind rmat --edges 9"},
		{file: "dataset-generate-no-edges", args: "dataset generate cora --kind rmat --vertices 9"},
		{file: "dataset-generate-preset-edges", args: "dataset generate cora --preset arxiv --edges 9"},
		{file: "dataset-generate-scale", args: "dataset generate cora --kind rmat --vertices 9 --edges 9 --scale 2"},
		{file: "dataset-generate-scale-zero", args: "dataset generate cora --preset arxiv --scale 0"},
		{file: "dataset-generate-scale-word", args: "dataset generate cora --preset arxiv --scale half"},
		{file: "dataset-generate-inside", args: "dataset generate cora --kind sbm --vertices 9 --edges 9 --inside 80"},
		{file: "dataset-generate-homophily", args: "dataset generate cora --kind sbm --vertices 9 --edges 9 --homophily 0"},
		{file: "dataset-list", args: "dataset list"},
		{file: "dataset-list-json", args: "dataset list --json"},
		{file: "dataset-list-none", args: "dataset list", with: func(b *backend) { b.empty = true }},
		{file: "dataset-list-none-json", args: "dataset list --json", with: func(b *backend) { b.empty = true }},
		{file: "dataset-show", args: "dataset show cora"},
		{file: "dataset-show-shards", args: "dataset show cora --shards"},
		{file: "dataset-show-json", args: "dataset show cora --json"},
		{file: "dataset-show-importing", args: "dataset show cora", with: func(b *backend) { b.empty = true }},
		{file: "dataset-show-unknown", args: "dataset show citeseer", with: func(b *backend) { b.err = api.NotFound("there is no dataset called citeseer") }},
		{file: "dataset-show-nothing", args: "dataset show"},
		{file: "dataset-verify", args: "dataset verify cora"},
		{file: "dataset-verify-json", args: "dataset verify cora --json"},
		{file: "dataset-verify-damaged", args: "dataset verify cora --json", with: func(b *backend) {
			b.err = api.Conflict("shard 3 on beta is damaged: it is being fetched from alpha")
			b.midway = true
		}},
		{file: "dataset-remove", args: "dataset remove cora"},
		{file: "dataset-remove-json", args: "dataset remove cora --json"},
		{file: "dataset-remove-unknown", args: "dataset remove citeseer", with: func(b *backend) { b.err = api.NotFound("there is no dataset called citeseer") }},
		{file: "dataset-remove-force", args: "dataset remove cora --force"},
		{file: "dataset-remove-needed", args: "dataset remove cora", with: func(b *backend) {
			b.err = api.Conflict("job j7 needs dataset cora to predict or to go on: remove what is of no more use with `hopmesh train remove j7`")
		}},
		{file: "dataset-no-verb", args: "dataset"},
		{file: "help-train", args: "help train"},
		{file: "help-train-start", args: "help train start"},
		{file: "help-train-list", args: "help train list"},
		{file: "help-train-show", args: "help train show"},
		{file: "help-train-watch", args: "help train watch"},
		{file: "help-train-stop", args: "help train stop"},
		{file: "help-train-resume", args: "help train resume"},
		{file: "help-train-remove", args: "help train remove"},
		{file: "help-train-options", args: "help train options"},
		{file: "help-predict", args: "help predict"},
		{file: "help-export", args: "help export"},
		{file: "train-start", args: "train start --dataset cora"},
		{file: "train-start-json", args: "train start --dataset cora --json"},
		{file: "train-start-watch", args: "train start --dataset cora --watch"},
		{file: "train-start-watch-json", args: "train start --dataset cora --watch --json"},
		{file: "train-start-nothing", args: "train start"},
		{file: "train-start-refused", args: "train start --dataset cora --set leap.merge=9", with: func(b *backend) {
			b.err = api.Invalid("leap.merge=9: on 3 nodes a step has at most 3 slots, one for each model: choose 1 to 3, auto or off")
		}},
		{file: "train-start-sweep", args: "train start --dataset cora --sweep lr=0.1,0.01 --sweep hidden=16,64"},
		{file: "train-start-sweep-key", args: "train start --dataset cora --sweep batch=10,20"},
		{file: "train-start-sweep-twice", args: "train start --dataset cora --lr 0.1 --sweep lr=0.1,0.01"},
		{file: "train-start-sweep-one", args: "train start --dataset cora --sweep lr=0.1"},
		{file: "train-start-sweep-none", args: "train start --dataset cora --sweep lr"},
		{file: "train-start-sweep-model", args: "train start --dataset cora --sweep model=gcn,gnc --sweep lr=0.1,0.01"},
		{file: "train-start-model", args: "train start --dataset cora --model gnc"},
		{file: "train-start-strategy", args: "train start --dataset cora --strategy ddp"},
		{file: "train-start-batch", args: "train start --dataset cora --batch half"},
		{file: "train-start-fanout", args: "train start --dataset cora --fanout 25,0"},
		{file: "train-start-set", args: "train start --dataset cora --set sage.aggregator"},
		{file: "train-start-nan", args: "train start --dataset cora --lr NaN"},
		{file: "train-start-inf", args: "train start --dataset cora --dropout Inf"},
		{file: "train-start-set-nan", args: "train start --dataset cora --set train.factor=nan"},
		{file: "train-start-epochs", args: "train start --dataset cora --epochs 10001"},
		{file: "train-start-layers", args: "train start --dataset cora --layers two"},
		{file: "train-start-spec", args: "train start --spec /nonexistent/spec.toml"},
		{file: "train-list", args: "train list"},
		{file: "train-list-json", args: "train list --json"},
		{file: "train-list-none", args: "train list", with: func(b *backend) { b.empty = true }},
		{file: "train-list-none-json", args: "train list --json", with: func(b *backend) { b.empty = true }},
		{file: "train-show", args: "train show j7"},
		{file: "train-show-epochs", args: "train show j7 --epochs"},
		{file: "train-show-json", args: "train show j7 --json"},
		{file: "train-show-running", args: "train show j7", with: func(b *backend) { b.job = running() }},
		{file: "train-show-queued", args: "train show j7", with: func(b *backend) { b.job = queued() }},
		{file: "train-show-queued-json", args: "train show j7 --json", with: func(b *backend) { b.job = queued() }},
		{file: "train-show-unjudged", args: "train show j7", with: func(b *backend) { b.job = unjudged() }},
		{file: "train-show-unjudged-json", args: "train show j7 --json", with: func(b *backend) { b.job = unjudged() }},
		{file: "train-watch-unjudged", args: "train watch j7", with: func(b *backend) { b.job = unjudged() }},
		{file: "train-show-failed", args: "train show j7", with: func(b *backend) { b.job = failed() }},
		{file: "train-show-shared", args: "train show j7", with: func(b *backend) { b.job = sharedJob() }},
		{file: "train-show-shared-epochs", args: "train show j7 --epochs", with: func(b *backend) { b.job = sharedJob() }},
		{file: "train-show-shared-json", args: "train show j7 --json", with: func(b *backend) { b.job = sharedJob() }},
		{file: "train-watch-shared", args: "train watch j7", with: func(b *backend) { b.job = sharedJob() }},
		{file: "train-stop-shared", args: "train stop j7", with: func(b *backend) { b.job = sharedJob() }},
		{file: "train-show-sweep", args: "train show j7", with: func(b *backend) { b.job = sweptJob() }},
		{file: "train-show-sweep-epochs", args: "train show j7 --epochs", with: func(b *backend) { b.job = sweptJob() }},
		{file: "train-show-sweep-json", args: "train show j7 --json", with: func(b *backend) { b.job = sweptJob() }},
		{file: "train-watch-sweep", args: "train watch j7", with: func(b *backend) { b.job = sweptJob() }},
		{file: "train-show-unknown", args: "train show j9", with: func(b *backend) { b.err = api.NotFound("there is no job j9") }},
		{file: "train-show-nothing", args: "train show"},
		{file: "train-watch", args: "train watch j7"},
		{file: "train-watch-json", args: "train watch j7 --json"},
		{file: "train-watch-failed", args: "train watch j7", with: func(b *backend) { b.job = failed() }},
		{file: "train-watch-failed-json", args: "train watch j7 --json", with: func(b *backend) { b.job = failed() }},
		{file: "train-watch-unknown", args: "train watch j9", with: func(b *backend) { b.err = api.NotFound("there is no job j9") }},
		{file: "train-stop", args: "train stop j7", with: func(b *backend) { b.job.State = "stopped" }},
		{file: "train-stop-json", args: "train stop j7 --json"},
		{file: "train-stop-away", args: "train stop j7", with: func(b *backend) { b.job = running() }},
		{file: "train-stop-unknown", args: "train stop j9", with: func(b *backend) { b.err = api.NotFound("there is no job j9") }},
		{file: "train-resume", args: "train resume j7"},
		{file: "train-resume-json", args: "train resume j7 --json"},
		{file: "train-resume-done", args: "train resume j7", with: func(b *backend) { b.err = api.Conflict("job j7 is done, so there is nothing to resume") }},
		{file: "train-resume-rate", args: "train resume j7 --lr 0.001"},
		{file: "train-resume-nan", args: "train resume j7 --lr NaN"},
		{file: "train-resume-negative", args: "train resume j7 --lr -1"},
		{file: "train-remove", args: "train remove j7"},
		{file: "train-remove-json", args: "train remove j7 --json"},
		{file: "train-remove-running", args: "train remove j7", with: func(b *backend) {
			b.err = api.Conflict("job j7 is running: stop it first, with `hopmesh train stop j7`")
		}},
		{file: "train-remove-nothing", args: "train remove"},
		{file: "train-options", args: "train options"},
		{file: "train-options-json", args: "train options --json"},
		{file: "train-options-sage", args: "train options sage"},
		{file: "train-options-single", args: "train options single"},
		{file: "train-options-single-json", args: "train options single --json"},
		{file: "train-options-leap", args: "train options leap"},
		{file: "train-options-centric", args: "train options centric"},
		{file: "train-options-unknown", args: "train options sgae"},
		{file: "train-no-verb", args: "train"},
		{file: "predict-no-file", args: "predict j7"},
		{file: "predict-format", args: "predict j7 --out cora.csv"},
		{file: "predict-no-folder", args: "predict j7 --out /nonexistent/cora.npy"},
		{file: "export-format", args: "export j7 --out model.pt"},
		{file: "status-training", args: "status", with: func(b *backend) { b.status.Training, b.status.Jobs = someJobs()[1:2], 1 }},
		{file: "plan-show-jobs", args: "plan show", with: func(b *backend) { b.jobs = someJobs() }},
		{file: "plan-show-shared", args: "plan show", with: func(b *backend) { b.jobs = sharedJobs() }},
		{file: "plan-show-shared-json", args: "plan show --json", with: func(b *backend) { b.jobs = sharedJobs() }},
		{file: "plan-show", args: "plan show"},
		{file: "plan-show-json", args: "plan show --json"},
		{file: "plan-show-empty-json", args: "plan show --json", with: func(b *backend) { b.empty = true }},
		{file: "monitor", args: "monitor"},
		{file: "monitor-json", args: "monitor --json --level debug"},
		{file: "monitor-level", args: "monitor --level loud"},
		{file: "demo", args: "demo"},
		{file: "demo-options", args: "demo --nodes 5 --json"},
		{file: "demo-none", args: "demo --nodes 0"},
		{file: "demo-no-number", args: "demo --nodes many"},
		{file: "bench-transport", args: "bench transport --json"},
		{file: "bench-unknown", args: "bench transprt"},
		{file: "help-bench", args: "help bench"},
		{file: "help-bench-strategies", args: "help bench strategies"},
		{file: "bench-strategies", args: "bench strategies --plot ladder.svg --json"},
		{file: "bench-strategies-only", args: "bench strategies --only kill,bytes --nodes 3"},
		{file: "bench-strategies-only-unknown", args: "bench strategies --only bytes,speed"},
		{file: "bench-strategies-only-plot", args: "bench strategies --only bytes --plot ladder.svg"},
		{file: "bench-strategies-pipe", args: "bench strategies --only kill --plot-pipe pipe.svg"},
		{file: "bench-strategies-alone", args: "bench strategies --nodes 1"},
		{file: "doctor", args: "doctor"},
		{file: "doctor-peer", args: "doctor 10.0.0.1:7946 --json --listen 10.0.0.9:7946"},
		{file: "recover", args: "recover --data-dir /srv/hopmesh --voters voters.txt"},
		{file: "recover-no-voters", args: "recover --data-dir /srv/hopmesh"},
		{file: "recover-no-dir", args: "recover --voters voters.txt"},
		{file: "help", args: ""},
		{file: "help-token", args: "help token create"},
		{file: "help-unknown", args: "help tokn"},
		{file: "unknown-command", args: "membrs --json"},
		{file: "unknown-verb", args: "token crate"},
		{file: "unknown-flag", args: "members --jsn"},
		{file: "unknown-short-flag", args: "members -q"},
		{file: "flag-without-value", args: "token create --ttl"},
		{file: "argument-too-many", args: "members alpha"},
		{file: "completion-unknown", args: "completion tcsh"},
		{file: "version-flag", args: "--version"},
		{file: "wrong-address", args: "members --addr localhost"},
		{file: "no-daemon", args: "members --addr unix:/nonexistent/hopmesh.sock"},
	} {
		t.Run(c.file, func(t *testing.T) {
			b := healthy()
			b.lines = []api.LogLine{
				{Time: then, Level: "INFO", Message: "node is alive", Attrs: map[string]string{"peer": "beta", "id": "bb00000000000002"}},
				{Time: then, Level: "WARN", Message: "cannot dial\x1b[2J", Attrs: map[string]string{"err": "no route to \"host\"", "peer": ""}},
			}
			if c.with != nil {
				c.with(b)
			}
			t.Setenv("HOPMESH_ADDR", serve(t, b))
			stdout, stderr, code := hopmesh(t.Context(), echo(), strings.Fields(c.args)...)
			got := fmt.Sprintf("$ hopmesh %s\n%s", c.args, stdout)
			if stderr != "" {
				got += "-- stderr\n" + stderr
			}
			got += fmt.Sprintf("-- exit %d\n", code)
			got = strings.ReplaceAll(got, os.Getenv("HOPMESH_ADDR"), "unix:SOCKET")
			compare(t, c.file, got)
			if strings.HasSuffix(c.file, "-json") && c.file != "monitor-json" {
				oneDocument(t, stdout)
			}
		})
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (go test ./cli -update writes it anew)\n%s", got, want)
	}
}

func oneDocument(t *testing.T, s string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	if err := d.Decode(new(any)); err != nil {
		t.Errorf("no JSON: %v", err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("more than one document: %v", err)
	}
}

// No golden file is left over from a command that is gone.
func TestGoldenFilesAreUsed(t *testing.T) {
	source, err := os.ReadFile("golden_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".txt"); !bytes.Contains(source, []byte(`file: "`+name+`"`)) {
			t.Errorf("%s belongs to no test", f)
		}
	}
}
