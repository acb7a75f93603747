package budget

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGranted(t *testing.T) {
	const none = "unlimited"
	for _, c := range []struct {
		name                       string
		asked                      uint64
		data, address, group, free string // in MiB, but for none
		want                       uint64 // MiB
		from                       string
	}{
		{"the machine", 0, none, none, "max", "15900", 15000, "the machine"},
		{"asked for", 300, none, none, "max", "15900", 300, "the setting"},
		{"asked for more than there is", 99999, none, none, "max", "15900", 99999, "the setting"},
		{"a group", 0, none, none, "1000", "15900", 900, "its control group"},
		{"asked for less than the group has", 500, none, none, "1000", "15900", 500, "the setting"},
		{"asked for more than the group has", 2000, none, none, "1000", "15900", 900, "its control group"},
		// 100 of data resident, of 140 that are mapped
		{"data", 0, "840", none, "max", "15900", 700, "its limit of data"},
		{"address space", 0, none, "2700", "max", "15900", 565, "its limit of address space"},
		{"little data", 0, "100", none, "max", "15900", 28, "its limit of data"},
	} {
		dir := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		mebi := func(n string) string {
			if n == none || n == "max" {
				return n
			}
			return n + "000000"
		}
		kilo := func(mebibytes string) string { return mebibytes + "000 kB\n" }
		f := files{
			status:  write("status", "VmSize:\t"+kilo("2000")+"VmData:\t"+kilo("140")+"RssAnon:\t"+kilo("100")),
			limits:  write("limits", "Limit  Soft Limit  Hard Limit  Units\nMax data size  "+mebi(c.data)+"  "+none+"  bytes\nMax address space  "+mebi(c.address)+"  "+none+"  bytes\n"),
			meminfo: write("meminfo", "MemAvailable:\t"+kilo(c.free)),
			groups:  write("cgroup", "0::/\n"),
			root:    dir,
		}
		write("memory.max", mebi(c.group)+"\n")
		got := granted(c.asked*1e6, f)
		if d := int64(got.Bytes/1e6) - int64(c.want); d < -20 || d > 400 && c.want > 10000 || d > 20 && c.want < 10000 || got.From != c.from {
			t.Errorf("%s: %d MB from %s, not %d from %s", c.name, got.Bytes/1e6, got.From, c.want, c.from)
		}
	}
}

// A limit of data leaves room for the runtime, and counts what the heap would take again.
func TestRoom(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	status := write("status", "VmData:\t102400 kB\n")
	with := files{status: status, limits: write("limits", "Max data size 209715200 unlimited bytes\n")}
	if err := room(80<<20, with); err != nil {
		t.Error(err)
	}
	if err := room(90<<20, with); err == nil || err.Error() != "the process may map 200.0 MiB of data (RLIMIT_DATA), and has mapped 100.0 MiB" {
		t.Errorf("%v", err)
	}
	if left, limited := unmapped(with); !limited || left < 100<<20 || left > 200<<20 {
		t.Errorf("%s are left", Format(left))
	}
	without := files{status: status, limits: write("limits", "Max data size unlimited unlimited bytes\n")}
	if err := room(1<<50, without); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	if _, limited := unmapped(without); limited {
		t.Error("without a limit, there is one")
	}
}

// What a process may map bounds what a node has, and not what its machine has free for others.
func TestALimitOfDataIsTheProcesss(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := files{status: write("status", "VmData:\t102400 kB\n"), limits: write("limits", "Max data size 209715200 unlimited bytes\n")}
	for limit, limited := range map[uint64]bool{0: false, 1 << 20: true, 1 << 30: false} {
		n := newNode(1, limit, Memory{Free: 8 << 30}, with)
		if n.Limited != limited || n.Memory.Free != 8<<30 || limited && n.Has != limit || n.Has == 0 || n.Has > 200<<20 {
			t.Errorf("with a limit of %d: %+v", limit, n)
		}
	}
}
