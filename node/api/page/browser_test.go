//go:build page

package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	opensWithin = time.Second
	showsWithin = time.Second
	mostBytes   = 300 << 10
	followed    = 10 // epochs
)

// TestPage opens the page of a mesh that trains, kills a node, and restarts the daemon that
// serves the page.
func TestPage(t *testing.T) {
	nodes := upMesh(t)
	alpha, beta, gamma := nodes[0], nodes[1], nodes[2]
	alpha.do(t, nil, "dataset", "generate", "papers", "--kind", "sbm", "--vertices", "12000", "--edges", "80000", "--features", "64", "--classes", "7", "--shards", "12", "--homophily", "0.7")
	sweep := alpha.train(t, "--hidden", "16", "--epochs", "15", "--batch", "1024", "--fanout", "10,10", "--strategy", "leap", "--sweep", "lr=0.02,0.002", "--sweep", "dropout=0.1,0.6")
	grappa := alpha.train(t, "--hidden", "16", "--epochs", "24", "--batch", "1024", "--fanout", "10,10", "--strategy", "grappa", "--set", "grappa.period=3", "--set", "grappa.loader=strict")
	pipe := alpha.train(t, "--hidden", "16", "--epochs", "12", "--strategy", "pipe")
	numbers := ofNumbers(t, alpha)
	until(t, "the first jobs are done", func() bool {
		var list []struct{ State string }
		alpha.do(t, &list, "train", "list")
		for _, j := range list {
			if j.State != "done" {
				return false
			}
		}
		return true
	})
	job := alpha.train(t, "--hidden", "64", "--epochs", "5000", "--batch", "256", "--fanout", "10,10", "--strategy", "leap")

	b := openBrowser(t)
	b.look(1200, 1150, "light")
	opens(t, b, "http://"+alpha.api+"/")
	b.await("all nodes are alive", `document.querySelectorAll(".node[data-status=alive]").length === 3`, 10*time.Second)
	b.await("each node owns shards", `["alpha", "beta", "gamma"].every((n) => document.querySelector("[data-holder=" + n + "] .cell.owned"))`, 10*time.Second)
	if n := value[int](b, `document.querySelectorAll("[data-dataset=papers] .row .cell.owned").length`); n != 12 {
		t.Errorf("%d shards of 12 are shown", n)
	}
	shown := fmt.Sprintf(`document.querySelector("article[data-job=%s]")`, job)
	b.await("the job that runs is shown", shown+`?.dataset.epoch >= 12`, time.Minute)
	for _, chart := range []string{"loss", "accuracy", "phases", "bytes"} {
		if !value[bool](b, `!!document.querySelector("#chart-`+chart+` :is(polyline, rect)")`) {
			t.Errorf("there is no chart of %s", chart)
		}
	}
	follows(t, b, beta, job, shown)
	b.await("each node's memory and links are shown", `[...document.querySelectorAll(".node")].every((n) => n.querySelector("meter").value > 0) &&
		document.querySelectorAll("[data-node=alpha] [data-link=beta], [data-node=beta] [data-link=alpha]").length === 2 && /[1-9].*iB\/s ↓/.test(document.querySelector("[data-node=beta] [data-link=alpha]").innerText)`, 10*time.Second)
	b.picture("page.png", 0)
	narrow(t, b)
	jobsOf(t, b, sweep, grappa, pipe)
	metricsOf(t, b, numbers)
	if err := b.eval(`location.hash = "`+job+`"`, nil); err != nil {
		t.Fatal(err)
	}
	b.await("the job that runs is shown again", shown+`?.dataset.epoch > 0`, 10*time.Second)
	hostile(t, b)
	if got := value[string](b, `import("/page/format.js").then((m) => m.seconds(179.6))`); got != "3 min 0 s" {
		t.Errorf("179.6 seconds are %s", got)
	}

	forecasts(t, b)

	epoch := value[int](b, shown+".dataset.epoch | 0")
	gamma.end(syscall.SIGKILL)
	took := b.await("the dead node is shown", `document.querySelector("[data-node=gamma]")?.dataset.status === "failed" && /answer.*gamma|gamma.*answer/.test(document.querySelector("#problems").innerText)`, 30*time.Second)
	t.Logf("the death of a node is shown after %v", took.Round(time.Millisecond))
	b.await("its shards have moved", `!document.querySelector("[data-holder=gamma] .cell.owned") && document.querySelectorAll("[data-dataset=papers] .row .cell.owned").length === 12`, 60*time.Second)
	b.await("the job goes on without it", fmt.Sprintf(`%s.dataset.epoch > %d && !%s.querySelector(".facts").innerText.includes("gamma")`, shown, epoch, shown), 60*time.Second)
	if !value[bool](b, `[...document.querySelectorAll("#events li")].some((e) => e.innerText.includes("gamma"))`) {
		t.Error("no event names the dead node")
	}
	b.look(1200, 1500, "light")
	b.picture("page-killed.png", 0)

	alpha.end(syscall.SIGTERM)
	b.await("the page says that its daemon is gone", `document.body.classList.contains("stale") && document.querySelector("#connection").innerText.includes("has not answered since")`, 10*time.Second)
	if !value[bool](b, `document.querySelectorAll(".node").length === 3`) {
		t.Error("what was known before is gone")
	}
	epoch = value[int](b, shown+".dataset.epoch | 0")
	alpha.start(t)
	took = b.await("the page lives again", `!document.body.classList.contains("stale") && document.querySelector("[data-node=alpha]")?.dataset.status === "alive"`, 15*time.Second)
	t.Logf("the page lives again %v after its daemon is ready", took.Round(time.Millisecond))
	b.await("its streams do too", fmt.Sprintf(`%s?.dataset.epoch > %d`, shown, epoch), 60*time.Second)
	follows(t, b, beta, job, shown)
	for _, c := range b.complaints() {
		t.Errorf("the page complains: %s", c)
	}
}

// ofNumbers starts a job that learns numbers.
func ofNumbers(t *testing.T, at *process) (job string) {
	t.Helper()
	var edges, nodes strings.Builder
	nodes.WriteString("id,split,x,speed,weight\n")
	for v := range 300 {
		fmt.Fprintf(&edges, "%d,%d\n%d,%d\n", v, (v+1)%300, v, (v+17)%300)
		fmt.Fprintf(&nodes, "%d,%s,%g,%g,%g\n", v, []string{"train", "val", "test"}[v%3], float64(v%7)/3, float64(v%7)/2+0.25, float64(v%5))
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"edges.csv": edges.String(), "nodes.csv": nodes.String()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at.do(t, nil, "dataset", "import", "numbers", folder, "--label-columns", "speed,weight", "--shards", "3")
	var started struct{ ID string }
	at.do(t, &started, "train", "start", "--dataset", "numbers", "--epochs", "3", "--strategy", "leap")
	return started.ID
}

// metricsOf looks at such a job, whose metrics are drawn in place of accuracies.
func metricsOf(t *testing.T, b *browser, job string) {
	t.Helper()
	if err := b.eval(`location.hash = "`+job+`"`, nil); err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf(`document.querySelector("article[data-job=%s]")`, job)
	b.await("a job of numbers is shown", shown+`?.dataset.epoch >= 3`, time.Minute)
	for _, name := range []string{"rmse", "mae", "r2"} {
		if !value[bool](b, `document.querySelectorAll("#chart-`+name+` polyline").length === 3`) {
			t.Errorf("there is no chart of %s", name)
		}
	}
	if value[bool](b, `!!document.querySelector("#chart-accuracy")`) {
		t.Error("there is a chart of accuracies")
	}
	if text := value[string](b, shown+`.querySelector(".facts").innerText`); !strings.Contains(text, "RMSE") {
		t.Errorf("the best epoch has no RMSE: %s", text)
	}
}

// forecasts asks for a forecast, which needs the secret of the daemon's address.
func forecasts(t *testing.T, b *browser) {
	t.Helper()
	form := `document.querySelector("#forecast form")`
	if err := b.eval(`document.querySelector("#forecast details").open = true; `+form+`.nodes.value = "1,3"; `+form+`.requestSubmit()`, nil); err != nil {
		t.Fatal(err)
	}
	b.await("the secret is asked for", `document.querySelector("#forecast [name=secret]") && document.querySelector("#forecast .failure").innerText.includes("secret in")`, 10*time.Second)
	_, path, _ := strings.Cut(value[string](b, `document.querySelector("#forecast .failure").innerText`), "secret in ")
	path, _, _ = strings.Cut(path, ", which")
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.eval(form+`.secret.value = "`+strings.TrimSpace(string(secret))+`"; `+form+`.requestSubmit()`, nil); err != nil {
		t.Fatal(err)
	}
	b.await("the forecast is shown", `document.querySelectorAll("#forecast [data-forecast]").length > 4 && document.querySelectorAll("#forecast tr.selected").length === 2`, 60*time.Second)
	b.await("it is over", form+`.querySelector("button").innerText === "Forecast"`, 10*time.Second)
}

// opens takes the best of three, since other programs share the machine.
func opens(t *testing.T, b *browser, url string) {
	t.Helper()
	least := time.Hour
	for range 3 {
		took, sent := b.open(url)
		t.Logf("opened in %v with %d bytes", took.Round(time.Millisecond), sent)
		if least = min(least, took); sent > mostBytes {
			t.Errorf("%d bytes were transferred, at most %d are allowed", sent, mostBytes)
		}
	}
	if least > opensWithin {
		t.Errorf("the page took %v to open, %v are allowed", least, opensWithin)
	}
}

// follows checks that epochs are on the page within a second of when another node's daemon
// reports them. One may be late: other programs share the machine.
func follows(t *testing.T, b *browser, n *process, job, shown string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.api+"/v1/jobs/"+job+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	in.Buffer(nil, 1<<20)
	// The page itself notes when it shows an epoch: the test shares the processors with the mesh.
	noting := fmt.Sprintf(`(() => {
		window.shownAt = {};
		const note = () => { const e = %s?.dataset.epoch; if (e) window.shownAt[e] ||= Date.now(); };
		new MutationObserver(note).observe(document.querySelector("#jobs"), { attributes: true, attributeFilter: ["data-epoch"], subtree: true });
		note();
	})()`, shown)
	if err := b.eval(noting, nil); err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for len(took) < followed && in.Scan() {
		reported := time.Now()
		var line struct {
			Epoch *struct {
				Epoch int `json:"epoch"`
			} `json:"epoch"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Epoch == nil {
			continue
		}
		b.await("the epoch is shown", fmt.Sprintf("%s.dataset.epoch >= %d", shown, line.Epoch.Epoch), 10*time.Second)
		at := value[int64](b, fmt.Sprintf("Math.min(...Object.entries(shownAt).filter(([e]) => e >= %d).map(([, at]) => at))", line.Epoch.Epoch))
		took = append(took, time.UnixMilli(at).Sub(reported))
	}
	if err := in.Err(); err != nil || len(took) < followed {
		t.Fatalf("%d epochs of %d were reported: %v", len(took), followed, err)
	}
	slices.Sort(took)
	most := took[len(took)-2]
	t.Logf("epochs were shown %v after another node reported them, at most %v but for one", took[len(took)/2].Round(time.Millisecond), most.Round(time.Millisecond))
	if most > showsWithin {
		t.Errorf("an epoch was shown after %v, %v are allowed", most, showsWithin)
	}
}

// narrow looks at the page on a phone in the dark.
func narrow(t *testing.T, b *browser) {
	t.Helper()
	b.look(360, 1400, "dark")
	b.await("the page is dark", `getComputedStyle(document.documentElement).backgroundColor === "rgb(15, 19, 24)"`, 5*time.Second)
	if w := value[int](b, "document.documentElement.scrollWidth"); w > 360 {
		t.Errorf("the page is %d pixels wide in a window of 360", w)
	}
	if small := value[[]string](b, `[...document.querySelectorAll("section, .card, figure")].filter((e) => e.getBoundingClientRect().right > 360).map((e) => e.id || e.className)`); len(small) > 0 {
		t.Errorf("beyond the right edge: %s", strings.Join(small, ", "))
	}
	b.picture("page-phone.png", value[int](b, `document.querySelector("article.job").getBoundingClientRect().top | 0`)-8)
	b.look(1200, 1150, "light")
}

// jobsOf goes to other jobs by the keyboard, and looks at what only they have.
func jobsOf(t *testing.T, b *browser, sweep, grappa, pipe string) {
	t.Helper()
	for job, there := range map[string]string{
		sweep:  `document.querySelectorAll("[data-model]").length === 4 && document.querySelectorAll("#chart-models polyline").length === 4`,
		grappa: `document.querySelector("#chart-coverage polyline")`,
		pipe:   `document.querySelector("#chart-pipeline .stage")`,
	} {
		focused := fmt.Sprintf(`document.querySelector("tr[data-job=%s] a")`, job)
		if err := b.eval(focused+".focus()", nil); err != nil {
			t.Fatal(err)
		}
		b.press("Enter", 13)
		b.await("job "+job, fmt.Sprintf(`document.querySelector("article[data-job=%s]") && %s`, job, there), 10*time.Second)
		if !value[bool](b, "document.activeElement === "+focused) {
			t.Errorf("the link to %s lost its focus", job)
		}
		if job == sweep {
			b.picture("page-sweep.png", value[int](b, `(document.querySelector("article.job").getBoundingClientRect().top | 0) + scrollY - 8`))
		}
	}
}

// hostile shows that names with markup in them stay text.
func hostile(t *testing.T, b *browser) {
	t.Helper()
	const evil = `<img src=x onerror="window.hit = 1"><script>window.hit = 1</script>`
	name, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	text := value[string](b, fmt.Sprintf(`(async () => {
		const [{ render }, { mesh, problems }] = await Promise.all([import("/page/dom.js"), import("/page/mesh.js")]);
		const name = %s;
		const box = document.createElement("div");
		document.body.append(box);
		render(box, mesh({ members: [{ id: "a", name, status: "failed", role: name, device: name }] }), problems({ status: { problems: [name] }, refused: {} }));
		const found = box.querySelector("img, script") || window.hit ? "markup" : box.querySelector("h3").textContent;
		box.remove();
		return found;
	})()`, name))
	if !strings.HasPrefix(text, evil) {
		t.Errorf("a name with markup is shown as %q", text)
	}
	// No name of a node is one of the page's own.
	links := value[string](b, `(async () => {
		const [{ render }, { mesh }] = await Promise.all([import("/page/dom.js"), import("/page/mesh.js")]);
		const links = ["more", "a", "b", "c", "d", "e"].map((to, i) => ({ to, sent_per_second: 9 - i, received_per_second: 0, rtt_seconds: 0 }));
		const box = document.createElement("div");
		for (let i = 0; i < 2; i++) render(box, mesh({ members: [{ id: "n", name: "n", status: "alive" }], vitals: [{ id: "n", links }] }));
		return [...box.querySelectorAll(".links li")].map((l) => l.textContent.split(" ")[0]).join(" ");
	})()`)
	if links != "more a b c d and" {
		t.Errorf("the links are %q", links)
	}
}
