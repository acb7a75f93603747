package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var made = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// content is what a small backup has.
var content = map[string]string{
	"identity/node.json": `{"id":"a"}`, "identity/ca.key": "key", PlanName: "the plan",
	"datasets/0123456789abcdef/0": strings.Repeat("shard", 500), "datasets/0123456789abcdef/1": "", "jobs/j12": "weights",
}

func sample() List {
	l := List{Format: Format, Version: "v1", Disk: 1, Mesh: "0123456789abcdef", Node: "00000000000000aa", Name: "n1", Index: 7, Term: 2, Made: made}
	for _, name := range []string{"identity/ca.key", "identity/node.json", PlanName, "datasets/0123456789abcdef/0", "datasets/0123456789abcdef/1", "jobs/j12"} {
		l.Files = append(l.Files, File{name, int64(len(content[name]))})
	}
	return l
}

func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, sample())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sample().Files {
		if _, err := w.Add(strings.NewReader(content[f.Name] + "what is beyond does not count")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// room takes files in memory, as long as they keep to the list.
type room struct {
	t     testing.TB
	list  List
	files map[string]*file
}

type file struct {
	bytes.Buffer
	most int64
	t    testing.TB
}

func (f *file) Write(p []byte) (int, error) {
	if int64(f.Len()+len(p)) > f.most {
		f.t.Errorf("more than %d bytes are written", f.most)
	}
	return f.Buffer.Write(p)
}

func (f *file) Close() error { return nil }

func read(t testing.TB, b []byte) (*room, map[string]string, error) {
	r := &room{t: t, files: map[string]*file{}}
	sums, err := Read(bytes.NewReader(b), func(l List) error {
		r.list = l
		return l.check()
	}, func(f File) (io.WriteCloser, error) {
		if kind, _, _ := f.Kind(); kind == Unknown || !filepath.IsLocal(f.Name) {
			t.Errorf("it opens %q", f.Name)
		}
		r.files[f.Name] = &file{most: f.Bytes, t: t}
		return r.files[f.Name], nil
	})
	return r, sums, err
}

func TestBackupIsReadAsItWasWritten(t *testing.T) {
	r, sums, err := read(t, written(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); r.list.Node != want.Node || r.list.Term != 2 || !r.list.Made.Equal(made) || !slices.Equal(r.list.Files, want.Files) {
		t.Errorf("its list is %+v", r.list)
	}
	for name, want := range content {
		if got := r.files[name].String(); got != want || len(sums[name]) != 64 {
			t.Errorf("%s has %.20q, SHA-256 %s", name, got, sums[name])
		}
	}
}

// Users who want to look inside need nothing of hopmesh.
func TestBackupIsATar(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b.tar"), written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "tar -xf b.tar && sha256sum -c SHA256SUMS && cat jobs/j12")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "datasets/0123456789abcdef/0: OK") || !strings.HasSuffix(string(out), "weights") {
		t.Errorf("%v: %s", err, out)
	}
}

// tarred makes a tar of files, each with its header.
func tarred(t testing.TB, files ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range files {
		text := h.Uname // what the file holds
		h.Uname, h.Size = "", int64(len(text))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func plain(name, text string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Uname: text}
}

func listed(change func(*List)) *tar.Header {
	l := sample()
	change(&l)
	b, _ := json.Marshal(l)
	return plain(listName, string(b))
}

func TestBackupsThatAreRefused(t *testing.T) {
	whole := written(t)
	same := func(*List) {}
	flip := func(at string) []byte {
		b := bytes.Clone(whole)
		b[bytes.Index(b, []byte(at))] ^= 1
		return b
	}
	names := func(list ...string) func(*List) {
		return func(l *List) {
			l.Files = nil
			for _, name := range list {
				l.Files = append(l.Files, File{Name: name, Bytes: 1})
			}
		}
	}
	for what, c := range map[string]struct {
		bytes []byte
		says  string
	}{
		"nothing":              {nil, "it is no backup"},
		"text":                 {bytes.Repeat([]byte("text\n"), 1000), "it is no backup"},
		"another tar":          {tarred(t, plain("README", "")), "it is no backup"},
		"a later format":       {tarred(t, listed(func(l *List) { l.Format = 2 })), "its format has the number 2, and this version reads 1"},
		"a list of nonsense":   {tarred(t, plain(listName, "[")), "its list can't be read"},
		"a list too long":      {tarred(t, plain(listName, strings.Repeat(" ", maxList+1))), "its list has 4194305 bytes"},
		"no plan":              {tarred(t, listed(names("identity/ca.key"))), "it lists no plan"},
		"two plans":            {tarred(t, listed(names("plan", "plan"))), "it lists plan twice"},
		"an order of its own":  {tarred(t, listed(names("plan", "identity/ca.key"))), "out of order"},
		"a path outside":       {tarred(t, listed(names("identity/../../a", "plan"))), `it lists a file "identity/../../a"`},
		"dots":                 {tarred(t, listed(names("identity/..", "plan"))), `it lists a file "identity/.."`},
		"an absolute path":     {tarred(t, listed(names("/plan"))), `it lists a file "/plan"`},
		"a strange file":       {tarred(t, listed(names("plan", "notes"))), `it lists a file "notes"`},
		"a strange shard":      {tarred(t, listed(names("plan", "datasets/0123456789abcdef/01"))), "it lists a file"},
		"a strange dataset":    {tarred(t, listed(names("plan", "datasets/x/0"))), "it lists a file"},
		"a strange job":        {tarred(t, listed(names("plan", "jobs/j01"))), "it lists a file"},
		"too many files":       {tarred(t, listed(func(l *List) { l.Files = make([]File, maxFiles+1) })), "it lists 20001 files"},
		"a large key":          {tarred(t, listed(func(l *List) { l.Files[0].Bytes = maxIdentity + 1 })), "it lists 65537 bytes of identity/ca.key, where 65536 may be"},
		"a large plan":         {tarred(t, listed(func(l *List) { l.Files[2].Bytes = 1 << 40 })), "of plan, where"},
		"less than nothing":    {tarred(t, listed(func(l *List) { l.Files[3].Bytes = -1 })), "it lists -1 bytes"},
		"more than counts":     {tarred(t, listed(func(l *List) { l.Files[3].Bytes, l.Files[5].Bytes = 1<<62, 1<<62 })), "it lists 4611686018427387904 bytes of jobs/j12"},
		"nothing but the list": {tarred(t, listed(same)), "identity/ca.key is cut off"},
		"another file":         {tarred(t, listed(same), plain("identity/node.json", "xxx")), `it has "identity/node.json" where identity/ca.key belongs`},
		"another length":       {tarred(t, listed(same), plain("identity/ca.key", "longer")), "identity/ca.key has 6 bytes, and its list says 3"},
		"a link":               {tarred(t, listed(same), &tar.Header{Typeflag: tar.TypeSymlink, Name: "identity/ca.key", Linkname: "/etc/passwd"}), "identity/ca.key is no plain file"},
		"a hard link":          {tarred(t, listed(same), &tar.Header{Typeflag: tar.TypeLink, Name: "identity/ca.key", Linkname: "plan"}), "identity/ca.key is no plain file"},
		"a device":             {tarred(t, listed(same), &tar.Header{Typeflag: tar.TypeChar, Name: "identity/ca.key"}), "identity/ca.key is no plain file"},
		"attributes":           {tarred(t, listed(same), &tar.Header{Typeflag: tar.TypeReg, Name: "identity/ca.key", Uname: "key", PAXRecords: map[string]string{"SCHILY.xattr.user.a": "b"}, Format: tar.FormatPAX}), "identity/ca.key is no plain file"},
		"a flipped bit":        {flip("weights"), "jobs/j12 has not the SHA-256"},
		"one in a name":        {flip(`"n1"`), "can't be read"},
		"one in the list":      {flip(`n1"`), "hopmesh-backup.json has not the SHA-256"},
		"something behind":     {append(bytes.Clone(whole), 'x'), "there is something after its end"},
	} {
		_, _, err := read(t, c.bytes)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v is neither", what, err)
		}
	}
	more := tarred(t, append(headers(t, whole), plain("more", ""))...)
	if _, _, err := read(t, more); err == nil || !strings.Contains(err.Error(), `it has "more" after its end`) {
		t.Errorf("a file more: %v", err)
	}
	less := headers(t, whole)
	less[len(less)-1].Uname = less[len(less)-1].Uname[1:]
	if _, _, err := read(t, tarred(t, less...)); err == nil || !strings.Contains(err.Error(), "SHA256SUMS has") {
		t.Errorf("sums of another length: %v", err)
	}
	// The zeros behind the last file may be missing: all is known by then.
	for n := range bytes.LastIndexByte(whole, '\n') + 1 {
		if _, _, err := read(t, whole[:n]); err == nil {
			t.Fatalf("cut off after %d of %d bytes, it is read", n, len(whole))
		}
	}
}

// headers takes a tar apart.
func headers(t testing.TB, b []byte) (list []*tar.Header) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		text, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		list = append(list, plain(h.Name, string(text)))
	}
}

func TestReadStopsAtErrorsOfItsCaller(t *testing.T) {
	mine := errors.New("mine")
	begin := func(List) error { return nil }
	if _, err := Read(bytes.NewReader(written(t)), func(List) error { return mine }, nil); !errors.Is(err, mine) {
		t.Errorf("begin: %v", err)
	}
	if _, err := Read(bytes.NewReader(written(t)), begin, func(File) (io.WriteCloser, error) { return nil, mine }); !errors.Is(err, mine) {
		t.Errorf("open: %v", err)
	}
	if _, err := Read(bytes.NewReader(written(t)), begin, func(File) (io.WriteCloser, error) { return failing{mine}, nil }); !errors.Is(err, mine) || errors.Is(err, ErrDamaged) {
		t.Errorf("write: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (failing) Close() error                { return nil }

func TestWriterRefuses(t *testing.T) {
	if _, err := NewWriter(io.Discard, List{Files: []File{{Name: "notes"}}}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a strange file: %v", err)
	}
	w, err := NewWriter(io.Discard, sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "lacks 6 files") {
		t.Errorf("files that are missing: %v", err)
	}
	if _, err := w.Add(strings.NewReader("k")); !errors.Is(err, errShrunk) {
		t.Errorf("a file that is too short: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	whole := written(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-1024])
	f.Add(whole[:3000])
	for _, name := range slices.Sorted(maps.Keys(content)) {
		b := bytes.Clone(whole)
		b[bytes.Index(b, []byte("ustar"))+len(name)] ^= 1
		f.Add(b)
	}
	f.Add(tarred(f, listed(func(l *List) { l.Files = []File{{Name: PlanName, Bytes: MaxPlan}} }), plain(PlanName, "x")))
	f.Add(tarred(f, listed(func(*List) {}), &tar.Header{Typeflag: tar.TypeSymlink, Name: "identity/ca.key", Linkname: "/"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, sums, err := read(t, b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		if len(sums) != len(r.list.Files)+1 {
			t.Errorf("%d sums of %d files", len(sums), len(r.list.Files))
		}
		for _, file := range r.list.Files {
			if got := r.files[file.Name]; got == nil || int64(got.Len()) != file.Bytes {
				t.Errorf("%s: %v", file.Name, fmt.Sprint(got))
			}
		}
	})
}
