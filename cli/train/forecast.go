package train

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hopmesh/hopmesh/cli/daemon"
	"github.com/hopmesh/hopmesh/cli/output"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Draw draws forecasts into a file whose name says how, after check has accepted it.
type Draw struct {
	Check func(file string) error
	Draw  func(file, title string, rows []api.ForecastRow) error
}

// forecast returns `hopmesh train forecast`.
func forecast(strategies []string, draw Draw) *cobra.Command {
	var d daemon.Flags
	var nodes []int
	var preset, rate, memory, plot, out string
	var trip time.Duration
	var replicas int
	cmd := &cobra.Command{
		Use:   "forecast --dataset D|--preset P --nodes N,N --rate RATE",
		Short: "Predict bytes, memory and time of a job on meshes of other sizes",
		Long: "Predicts what an epoch of a job takes by each strategy on each number of nodes. The asked node samples\n" +
			"batches of the dataset, deals them to nodes that need not exist, and counts what these would send each other;\n" +
			"it computes the largest part of some steps to time them. Shards that it lacks it borrows from other nodes for\n" +
			"as long as that takes. Nothing is trained. The flags of the model are those of `hopmesh train start`.\n\n" +
			"--preset is for a graph that is not here: its size is that of the publication, and its edges are made up.\n\n" +
			"BEST marks the fastest strategy that fits, of those that compute what one machine would.",
		Example: "  hopmesh train forecast --dataset papers --model sage --layers 3 --hidden 256 --batch 1024 --fanout 15,10,5 --nodes 4,16,64 --rate 25gbit\n" +
			"  hopmesh train forecast --dataset papers --strategy leap --nodes 8 --rate 10gbit --memory 64GiB --json\n" +
			"  hopmesh train forecast --preset papers100m --model sage --layers 3 --batch 8192 --fanout 15,10,5 --nodes 4,64,1000 --rate 25gbit",
		Args:              usage.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			job, err := request(cmd.Flags(), preset == "")
			r := api.ForecastRequest{Job: job, Preset: preset, Nodes: nodes, RoundTrip: trip.Seconds()}
			if err == nil {
				r.Bandwidth, err = linkRate(rate)
			}
			if err == nil && memory != "" {
				r.Memory, err = output.ParseSize(memory)
			}
			if cmd.Flags().Changed("replicas") {
				r.Replicas = &replicas
			}
			if err == nil {
				err = r.Check()
			}
			if err == nil && job.Strategy != "" && !slices.Contains(strategies, job.Strategy) {
				err = fmt.Errorf("there is no strategy %q: use %s", job.Strategy, usage.OneOf(strategies))
			}
			if err == nil {
				err = draw.Check(plot)
			}
			if err != nil {
				return usage.Errorf(cmd, "%v", err)
			}
			f, err := daemon.Ask(cmd, &d, func(ctx context.Context, c *api.Client) (api.JobForecast, error) {
				return c.Forecast(ctx, r, func(api.ForecastRow) {})
			})
			if err != nil {
				return err
			}
			if plot != "" {
				title := fmt.Sprintf("an epoch of %s on %s, forecast", cmp.Or(job.Model, "gcn"), cmp.Or(job.Dataset, preset))
				if err := draw.Draw(plot, title, f.Rows); err != nil {
					return err
				}
			}
			if out != "" {
				if err := writePage(out, cmd, f); err != nil {
					return err
				}
			}
			if d.JSON {
				return output.JSON(cmd.OutOrStdout(), f)
			}
			return printForecast(cmd.OutOrStdout(), f)
		},
	}
	flags(cmd, strategies)
	f := cmd.Flags()
	f.StringVar(&preset, "preset", "", "`NAME` of a graph that is not here and known by its shape, in place of --dataset: "+usage.OneOf(api.ForecastPresets()))
	f.IntSliceVar(&nodes, "nodes", nil, "`NUMBERS` of nodes, such as 4,16,64")
	f.StringVar(&rate, "rate", "", "`RATE` of each node's link, such as 25gbit or 3GB")
	f.DurationVar(&trip, "round-trip", 0, "time of the smallest question between two nodes, a `DURATION` such as 200us (default: as this machine asks itself)")
	f.StringVar(&memory, "memory", "", "memory of a node, a `SIZE` such as 64GiB (default: no bound)")
	f.IntVar(&replicas, "replicas", 0, "`COPIES` of each shard beside the owner's (default: the dataset's)")
	f.StringVar(&plot, "plot", "", "draw the forecast into an SVG `FILE`")
	f.StringVar(&out, "out", "", "also write the forecast as a Markdown page into a `FILE`")
	d.Add(cmd)
	return cmd
}

// units are those of a link's rate, in bytes a second. Longer names come first.
var units = []struct {
	name  string
	bytes float64
}{{"gbit", 1e9 / 8}, {"mbit", 1e6 / 8}, {"kbit", 1e3 / 8}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

// linkRate returns the bytes a second that a text such as 25gbit means.
func linkRate(text string) (float64, error) {
	bad := fmt.Errorf("--rate %q is not the rate of a link: write 25gbit, 400mbit or 3GB", text)
	if text == "" {
		return 0, fmt.Errorf("--rate is missing: give the rate of each node's link, such as 25gbit")
	}
	for _, u := range units {
		if number, is := strings.CutSuffix(strings.TrimSuffix(text, "/s"), u.name); is {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(x > 0) || x > 1e9 {
				return 0, bad
			}
			return x * u.bytes, nil
		}
	}
	return 0, bad
}

func printForecast(w io.Writer, f api.JobForecast) error {
	if err := output.Table(w, forecastRows(f)...); err != nil {
		return err
	}
	for _, text := range forecastNotes(f) {
		if _, err := fmt.Fprintln(w, output.Sentence(text)); err != nil {
			return err
		}
	}
	return nil
}

// forecastRows returns the rows of a table, with its head.
func forecastRows(f api.JobForecast) [][]string {
	rows := [][]string{{"NODES", "STRATEGY", "EPOCH", "COMPUTE", "PREPARE", "HIDDEN", "WAIT", "SENT", "ONCE", "MEMORY", "FITS", "BEST"}}
	for _, r := range f.Rows {
		best := ""
		if r.Best {
			best = "best"
		}
		if r.Seconds == 0 {
			rows = append(rows, []string{strconv.Itoa(r.Nodes), r.Strategy, "-", "-", "-", "-", "-", "-", "-", "-", "-", ""})
			continue
		}
		rows = append(rows, []string{
			strconv.Itoa(r.Nodes), r.Strategy, output.Seconds(r.Seconds), output.Seconds(r.Parts.Compute), output.Seconds(r.Parts.Prepare),
			output.Seconds(r.Parts.Hidden), output.Seconds(r.Parts.Wait), output.Bytes(r.Bytes.Total()), output.Bytes(r.Once.Total()),
			output.Size(r.Memory), output.YesNo(r.Fits), best,
		})
	}
	return rows
}

// forecastNotes returns what is said below the table.
func forecastNotes(f api.JobForecast) (notes []string) {
	for _, r := range f.Rows {
		if r.Why == "" {
			continue
		}
		note := fmt.Sprintf("%s on %s: %s", r.Strategy, output.Plural(r.Nodes, "node", "nodes"), r.Why)
		if n := enough(f.Rows, r); n > 0 {
			note += fmt.Sprintf("; it fits on %d nodes", n)
		}
		notes = append(notes, note)
	}
	return append(notes, f.Assumptions...)
}

// enough returns the least number of nodes, of those asked about, that is more than a row's
// and on which its strategy fits; 0: there is none.
func enough(rows []api.ForecastRow, than api.ForecastRow) (nodes int) {
	for _, r := range rows {
		if r.Strategy == than.Strategy && r.Nodes > than.Nodes && r.Fits && (nodes == 0 || r.Nodes < nodes) {
			nodes = r.Nodes
		}
	}
	return nodes
}

// commandLine returns what makes the same forecast when it is typed: the flags that were given,
// without those about how the command runs and where it writes.
func commandLine(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains(notInSpec, flag.Name) || flag.Name == "out" {
			return
		}
		name, value := "--"+flag.Name, flag.Value.String()
		list, isList := flag.Value.(pflag.SliceValue)
		switch {
		case flag.Value.Type() == "bool" && value == "true":
			words = append(words, name)
		case flag.Value.Type() == "bool": // its value can't be a word of its own
			words = append(words, name+"="+value)
		case flag.Value.Type() == "stringArray": // each value may have commas in it
			for _, v := range list.GetSlice() {
				words = append(words, name, quoted(v))
			}
		case isList:
			words = append(words, name, quoted(strings.Join(list.GetSlice(), ",")))
		default:
			words = append(words, name, quoted(value))
		}
	})
	return strings.Join(words, " ")
}

// plain are the characters, beside letters and digits, that mean nothing to a shell.
const plain = "_-+.,:/=@%"

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune(plain, r) && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// writePage writes a forecast with the command that made it and its assumptions.
func writePage(file string, cmd *cobra.Command, f api.JobForecast) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Forecast\n\n```sh\n%s\n```\n\nMade on %s. Times are those of an epoch on the slowest node; EPOCH is the largest of COMPUTE with WAIT, of PREPARE with HIDDEN, and of all that keeps the processors busy, step by step.\n\n", commandLine(cmd), output.Clock().Format(time.DateOnly))
	for i, row := range forecastRows(f) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	b.WriteString("\n## Assumptions\n\n")
	for _, text := range forecastNotes(f) {
		b.WriteString("- " + output.Sentence(text) + "\n")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a page to be read
		return fmt.Errorf("write the forecast: %w", err)
	}
	return nil
}
