package train_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/cli/clitest"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/train"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the golden files show times
	output.Clock = func() time.Time { return clitest.Then }
	os.Exit(m.Run())
}

// hopmesh runs a command line in this process.
func hopmesh(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	var out, diag bytes.Buffer
	code = cli.Execute(ctx, root(), args, &out, &diag)
	return out.String(), diag.String(), code
}

func root() *cobra.Command {
	return cli.New(cli.Local{Options: someOptions, Strategies: []string{"auto", "single", "centric", "leap"}, Draw: train.Draw{Check: checkPlot}}, "v0.1.0")
}

func checkPlot(file string) error {
	if file == "" {
		return nil
	}
	return errors.New("pictures end in .svg")
}

func someOptions() []train.Option {
	return []train.Option{
		{Key: "train.schedule", Applies: "train", Values: "constant|step", Default: "constant", Help: "how the rate changes"},
		{Key: "model.head", Values: "none|linear", Default: "none", Help: "what follows the layers"},
		{Key: "sage.aggregator", Applies: "sage", Values: "mean|max|gcn", Default: "mean", Help: "how neighbours become one row"},
		{Key: "leap.mode", Applies: "leap", Values: "auto|stay|migrate", Default: "auto", Help: "whether models tour the nodes"},
		{Key: "topology", Applies: "strategies", Values: "auto|replicated|sharded", Default: "auto", Help: "whether each node has all edges"},
	}
}

// Each file in testdata/golden shows one command: what it prints, and how it ends.
func TestGolden(t *testing.T) {
	clitest.Golden(t, hopmesh, []clitest.Case{
		{File: "help-train", Args: "help train"},
		{File: "help-train-start", Args: "help train start"},
		{File: "help-train-list", Args: "help train list"},
		{File: "help-train-show", Args: "help train show"},
		{File: "help-train-watch", Args: "help train watch"},
		{File: "help-train-stop", Args: "help train stop"},
		{File: "help-train-resume", Args: "help train resume"},
		{File: "help-train-remove", Args: "help train remove"},
		{File: "help-train-options", Args: "help train options"},
		{File: "help-train-forecast", Args: "help train forecast"},
		{File: "train-forecast", Args: "train forecast --dataset cora --nodes 4,16 --rate 25gbit --memory 64GiB"},
		{File: "train-forecast-json", Args: "train forecast --dataset cora --nodes 4 --rate 400mbit --json"},
		{File: "train-forecast-preset", Args: "train forecast --preset papers100m --nodes 1000 --rate 3GB"},
		{File: "train-forecast-bad-preset", Args: "train forecast --preset paper --nodes 1000 --rate 3GB"},
		{File: "train-forecast-two", Args: "train forecast --preset papers100m --dataset cora --nodes 1000 --rate 3GB"},
		{File: "train-forecast-no-rate", Args: "train forecast --dataset cora --nodes 4"},
		{File: "train-forecast-bad-rate", Args: "train forecast --dataset cora --nodes 4 --rate fast"},
		{File: "train-forecast-no-nodes", Args: "train forecast --dataset cora --rate 25gbit"},
		{File: "train-forecast-many-nodes", Args: "train forecast --dataset cora --rate 25gbit --nodes 5000"},
		{File: "train-forecast-bad-plot", Args: "train forecast --dataset cora --rate 25gbit --nodes 5 --plot x.gif"},
		{File: "help-predict", Args: "help predict"},
		{File: "help-evaluate", Args: "help evaluate"},
		{File: "evaluate", Args: "evaluate j7"},
		{File: "evaluate-json", Args: "evaluate j7 --dataset august --json"},
		{File: "evaluate-split", Args: "evaluate j7 --split=-1"},
		{File: "help-export", Args: "help export"},
		{File: "train-start", Args: "train start --dataset cora"},
		{File: "train-start-json", Args: "train start --dataset cora --json"},
		{File: "train-start-watch", Args: "train start --dataset cora --watch"},
		{File: "train-start-watch-json", Args: "train start --dataset cora --watch --json"},
		{File: "train-start-nothing", Args: "train start"},
		{File: "train-start-refused", Args: "train start --dataset cora --set leap.merge=9", With: func(b *clitest.Backend) {
			b.Err = api.Invalid("leap.merge=9: on 3 nodes a step has at most 3 slots, one for each model: choose 1 to 3, auto or off")
		}},
		{File: "train-start-sweep", Args: "train start --dataset cora --sweep lr=0.1,0.01 --sweep hidden=16,64"},
		{File: "train-start-sweep-key", Args: "train start --dataset cora --sweep batch=10,20"},
		{File: "train-start-sweep-twice", Args: "train start --dataset cora --lr 0.1 --sweep lr=0.1,0.01"},
		{File: "train-start-sweep-one", Args: "train start --dataset cora --sweep lr=0.1"},
		{File: "train-start-sweep-none", Args: "train start --dataset cora --sweep lr"},
		{File: "train-start-sweep-model", Args: "train start --dataset cora --sweep model=gcn,gnc --sweep lr=0.1,0.01"},
		{File: "train-start-model", Args: "train start --dataset cora --model gnc"},
		{File: "train-start-strategy", Args: "train start --dataset cora --strategy ddp"},
		{File: "train-start-batch", Args: "train start --dataset cora --batch half"},
		{File: "train-start-fanout", Args: "train start --dataset cora --fanout 25,0"},
		{File: "train-start-edge-split", Args: "train start --dataset cora --task link --edge-split 0.8,half"},
		{File: "train-start-edge-split-shares", Args: "train start --dataset cora --task link --edge-split 0.8,0.2"},
		{File: "train-start-edge-split-task", Args: "train start --dataset cora --edge-split 0.8,0.1,0.1"},
		{File: "train-start-set", Args: "train start --dataset cora --set sage.aggregator"},
		{File: "train-start-nan", Args: "train start --dataset cora --lr NaN"},
		{File: "train-start-negative", Args: "train start --dataset cora --lr -1"},
		{File: "train-start-sweep-negative", Args: "train start --dataset cora --sweep lr=0.1,-1"},
		{File: "train-start-inf", Args: "train start --dataset cora --dropout Inf"},
		{File: "train-start-set-nan", Args: "train start --dataset cora --set train.factor=nan"},
		{File: "train-start-epochs", Args: "train start --dataset cora --epochs 10001"},
		{File: "train-start-layers", Args: "train start --dataset cora --layers two"},
		{File: "train-start-spec", Args: "train start --spec /nonexistent/spec.toml"},
		{File: "train-list", Args: "train list"},
		{File: "train-list-json", Args: "train list --json"},
		{File: "train-list-none", Args: "train list", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "train-list-none-json", Args: "train list --json", With: func(b *clitest.Backend) { b.Empty = true }},
		{File: "train-show", Args: "train show j7"},
		{File: "train-show-from", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo.From = "j3" }},
		{File: "train-show-epochs", Args: "train show j7 --epochs"},
		{File: "train-show-json", Args: "train show j7 --json"},
		{File: "train-show-running", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Running() }},
		{File: "train-show-queued", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Queued() }},
		{File: "train-show-queued-json", Args: "train show j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.Queued() }},
		{File: "train-show-unjudged", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Unevaluated() }},
		{File: "train-show-unjudged-json", Args: "train show j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.Unevaluated() }},
		{File: "train-watch-unjudged", Args: "train watch j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Unevaluated() }},
		{File: "train-show-failed", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Failed() }},
		{File: "train-show-shared", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "train-show-shared-epochs", Args: "train show j7 --epochs", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "train-show-shared-json", Args: "train show j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "train-watch-shared", Args: "train watch j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "train-stop-shared", Args: "train stop j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.SharedJob() }},
		{File: "train-show-sweep", Args: "train show j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Sweep() }},
		{File: "train-show-sweep-epochs", Args: "train show j7 --epochs", With: func(b *clitest.Backend) { b.JobInfo = clitest.Sweep() }},
		{File: "train-show-sweep-json", Args: "train show j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.Sweep() }},
		{File: "train-watch-sweep", Args: "train watch j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Sweep() }},
		{File: "train-show-unknown", Args: "train show j9", With: func(b *clitest.Backend) { b.Err = api.NotFound("there is no job j9") }},
		{File: "train-show-nothing", Args: "train show"},
		{File: "train-watch", Args: "train watch j7"},
		{File: "train-watch-json", Args: "train watch j7 --json"},
		{File: "train-watch-failed", Args: "train watch j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Failed() }},
		{File: "train-watch-failed-json", Args: "train watch j7 --json", With: func(b *clitest.Backend) { b.JobInfo = clitest.Failed() }},
		{File: "train-watch-unknown", Args: "train watch j9", With: func(b *clitest.Backend) { b.Err = api.NotFound("there is no job j9") }},
		{File: "train-stop", Args: "train stop j7", With: func(b *clitest.Backend) { b.JobInfo.State = "stopped" }},
		{File: "train-stop-json", Args: "train stop j7 --json"},
		{File: "train-stop-away", Args: "train stop j7", With: func(b *clitest.Backend) { b.JobInfo = clitest.Running() }},
		{File: "train-stop-unknown", Args: "train stop j9", With: func(b *clitest.Backend) { b.Err = api.NotFound("there is no job j9") }},
		{File: "train-resume", Args: "train resume j7"},
		{File: "train-resume-json", Args: "train resume j7 --json"},
		{File: "train-resume-done", Args: "train resume j7", With: func(b *clitest.Backend) { b.Err = api.Conflict("job j7 is done, so there is nothing to resume") }},
		{File: "train-resume-rate", Args: "train resume j7 --lr 0.001"},
		{File: "train-resume-nan", Args: "train resume j7 --lr NaN"},
		{File: "train-resume-negative", Args: "train resume j7 --lr -1"},
		{File: "train-remove", Args: "train remove j7"},
		{File: "train-remove-json", Args: "train remove j7 --json"},
		{File: "train-remove-running", Args: "train remove j7", With: func(b *clitest.Backend) {
			b.Err = api.Conflict("job j7 is running: stop it first, with `hopmesh train stop j7`")
		}},
		{File: "train-remove-nothing", Args: "train remove"},
		{File: "train-options", Args: "train options"},
		{File: "train-options-json", Args: "train options --json"},
		{File: "train-options-sage", Args: "train options sage"},
		{File: "train-options-single", Args: "train options single"},
		{File: "train-options-single-json", Args: "train options single --json"},
		{File: "train-options-leap", Args: "train options leap"},
		{File: "train-options-centric", Args: "train options centric"},
		{File: "train-options-unknown", Args: "train options sgae"},
		{File: "train-options-auto", Args: "train options auto"},
		{File: "train-no-verb", Args: "train"},
		{File: "predict-no-file", Args: "predict j7"},
		{File: "predict-format", Args: "predict j7 --out cora.csv"},
		{File: "predict-pairs-format", Args: "predict j7 --pairs /a.csv --out pairs.xls"},
		{File: "predict-pairs-and-top", Args: "predict j7 --pairs /a.csv --top 3"},
		{File: "predict-pairs-nothing", Args: "predict j7 --pairs"},
		{File: "predict-pairs-empty", Args: "predict j7 --pairs= --out a.csv"},
		{File: "predict-pairs-task", Args: "predict j7 --task class --pairs /a.csv"},
		{File: "predict-top-none", Args: "predict j7 --top 0"},
		{File: "predict-top-negative", Args: "predict j7 --top -3"},
		{File: "predict-top-npy", Args: "predict j7 --top 3 --out a.npy"},
		{File: "predict-vertices", Args: "predict j7 --vertices /a.csv --out a.npy"},
		{File: "predict-top", Args: "predict j7 --task link --top 3", With: func(b *clitest.Backend) { b.File = []byte("source,target,score\n1,2,0.5\n") }},
		{File: "predict-top-json", Args: "predict j7 --top 3 --json", With: func(b *clitest.Backend) {
			b.File = []byte("{\"pairs\":[\n{\"source\":1,\"target\":2,\"score\":0.5}\n]}\n")
		}},
		{File: "predict-top-refused", Args: "predict j7 --top 3", With: func(b *clitest.Backend) {
			b.Err = api.Conflict("job j7 learns the task class, and pairs are scored by a model of task link: train one with `hopmesh train start --task link`")
		}},
		{File: "predict-no-folder", Args: "predict j7 --out /nonexistent/cora.npy"},
		{File: "export-format", Args: "export j7 --out model.pt"},
	})
}
