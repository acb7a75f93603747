//go:build page

package page_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is one page of a headless Chromium, which is driven by the DevTools protocol over a
// pair of pipes: JSON, each message ended by a zero byte.
type browser struct {
	t       *testing.T
	to      io.Writer
	session string

	mu       sync.Mutex
	last     int
	waiting  map[int]chan reply
	troubles []string
}

// message is what either side sends.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

type reply struct {
	result json.RawMessage
	err    error
}

// chromium returns the program's path.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium here: install it with apt-get install chromium, or name one in CHROMIUM")
	return ""
}

// openBrowser starts Chromium with one empty page.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "about:blank",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // which root can't have
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, chromium(t), args...)
	cmd.ExtraFiles = []*os.File{theirs, ours}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirs.Close(), ours.Close()
	b := &browser{t: t, to: to, waiting: map[int]chan reply{}}
	go b.read(from)
	t.Cleanup(func() {
		// Asked to close it takes its own processes along and empties its folder.
		b.session = ""
		_, _ = b.try("Browser.close", nil)
		timer := time.AfterFunc(10*time.Second, stop)
		_ = cmd.Wait()
		timer.Stop()
		stop()
		_, _ = to.Close(), from.Close()
	})
	var target struct {
		ID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	b.session = attached.Session
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Network.setCacheDisabled", map[string]any{"cacheDisabled": true}, nil)
	return b
}

// read passes answers to who waits for them, and keeps what the page complains of.
func (b *browser) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			for id, c := range b.waiting {
				c <- reply{err: fmt.Errorf("Chromium ended: %w", err)}
				delete(b.waiting, id)
			}
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		switch {
		case m.ID != 0:
			r := reply{result: m.Result}
			if m.Error != nil {
				r.err = fmt.Errorf("%s", m.Error.Message)
			}
			if c := b.waiting[m.ID]; c != nil {
				c <- r
				delete(b.waiting, m.ID)
			}
		case m.Method == "Runtime.exceptionThrown":
			b.troubles = append(b.troubles, string(m.Params))
		case m.Method == "Log.entryAdded" && !strings.Contains(string(m.Params), `"source":"network"`): // a daemon that is down
			b.troubles = append(b.troubles, string(m.Params))
		}
		b.mu.Unlock()
	}
}

func (b *browser) try(method string, params any) (json.RawMessage, error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		p = []byte("{}")
	}
	c := make(chan reply, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, Session: b.session, Method: method, Params: p}
	b.waiting[m.ID] = c
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r := <-c:
		return r.result, r.err
	case <-time.After(2 * time.Minute):
		return nil, fmt.Errorf("Chromium does not answer")
	}
}

// call makes a call, and decodes its result into out if that is not nil.
func (b *browser) call(method string, params, out any) {
	b.t.Helper()
	raw, err := b.try(method, params)
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// eval returns the value of an expression, once it has one if it is a promise.
func (b *browser) eval(expression string, out any) error {
	b.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string          `json:"description"`
				Value       json.RawMessage `json:"value"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if e := r.Exception; e != nil {
		return fmt.Errorf("%s %s %s", e.Text, e.Exception.Description, e.Exception.Value)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, out)
}

// value is eval of what must have a value.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	var v T
	if err := b.eval(expression, &v); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// await waits until a condition holds in the page, and returns for how long.
func (b *browser) await(what, condition string, most time.Duration) time.Duration {
	b.t.Helper()
	var ms float64
	err := b.eval(fmt.Sprintf(`new Promise((done, fail) => {
		const begun = performance.now();
		const look = () => {
			if (%s) done(performance.now() - begun);
			else if (performance.now() - begun > %d) fail("it never was so");
			else setTimeout(look, 10);
		};
		look();
	})`, condition, most.Milliseconds()), &ms)
	if err != nil {
		b.t.Fatalf("%s: %v; the page complains of %q and says:\n%s", what, err, b.complaints(), value[string](b, "document.body.innerText.slice(0, 3000)"))
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// open goes to an address. It returns when the page was drawn for the first time, and how much
// was transferred until then.
func (b *browser) open(url string) (time.Duration, int) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.await("the page opens", `performance.getEntriesByName("drawn").length > 0 && performance.timing.loadEventEnd > 0`, 30*time.Second)
	ms := value[float64](b, `performance.getEntriesByName("drawn")[0].startTime`)
	n := value[int](b, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, r) => sum + r.transferSize, 0)`)
	return time.Duration(ms * float64(time.Millisecond)), n
}

// look makes the window so wide and high, light or dark.
func (b *browser) look(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// picture takes a picture of what the window shows from a height on.
func (b *browser) picture(name string, from int) {
	b.t.Helper()
	dir := os.Getenv("IMAGES")
	if dir == "" {
		return
	}
	b.call("Runtime.evaluate", map[string]any{"expression": fmt.Sprintf("scrollTo(0, %d)", from)}, nil)
	var shot struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		data, err = smaller(data)
	}
	if err == nil {
		err = os.WriteFile(dir+"/"+name, data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.call("Runtime.evaluate", map[string]any{"expression": "scrollTo(0, 0)"}, nil)
}

// smaller writes a picture with the 256 colours that it has most of.
func smaller(data []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	count := map[color.Color]int{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			count[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	few := image.NewPaletted(full.Bounds(), colours[:min(len(colours), 256)])
	nearest := map[color.Color]uint8{}
	for y := full.Bounds().Min.Y; y < full.Bounds().Max.Y; y++ {
		for x := full.Bounds().Min.X; x < full.Bounds().Max.X; x++ {
			c := full.At(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(few.Palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}

// press presses a key as a user does.
func (b *browser) press(key string, code int) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
		if key == "Enter" && kind == "keyDown" {
			p["text"] = "\r"
		}
		b.call("Input.dispatchKeyEvent", p, nil)
	}
}

// complaints are exceptions of the page, and what it was refused by its policy.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.troubles
}
