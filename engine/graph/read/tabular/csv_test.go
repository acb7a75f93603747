package tabular

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestEdgesAreTakenHoweverTheyAreLaidOut(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"no header":             {"e.csv", "0,1\n1,2\n", "0>1 1>2"},
		"a header":              {"e.csv", "src,dst\n0,1\n", "0>1"},
		"other names, turned":   {"e.csv", "To,FROM\n0,1\n", "1>0"},
		"u and v":               {"e.tsv", "u\tv\n0\t1\n", "0>1"},
		"tabs":                  {"e.tsv", "0\t1\n1\t0\n", "0>1 1>0"},
		"semicolons":            {"e.csv", "0;1\n1;0\n", "0>1 1>0"},
		"blanks":                {"e.txt", "0 1\n1   2\n 2 \t 0 \n", "0>1 1>2 2>0"},
		"commas and blanks":     {"e.txt", "0, 1\n1 ,0\n", "0>1 1>0"},
		"comments":              {"e.txt", "# nodes: 2\n% more\n0 1\n\n1 0\n", "0>1 1>0"},
		"ids like comments":     {"e.txt", "# nodes: 2\n0 1\n#0 %5\n1 0\n", "0>1 #0>%5 1>0"},
		"no end of line":        {"e.csv", "0,1\n1,0", "0>1 1>0"},
		"CRLF":                  {"e.csv", "0,1\r\n1,0\r\n", "0>1 1>0"},
		"CRLF, header, weights": {"e.csv", "src,dst,weight\r\n0,1,2.5\r\n1,0,-1e2\r\n", "0>1:2.5 1>0:-100"},
		"CRLF without the last": {"e.csv", "0,1,1\r\n1,0,2\r", "0>1:1 1>0:2"},
		"BOM":                   {"e.csv", "\xef\xbb\xbf0,1\n", "0>1"},
		"BOM and header":        {"e.csv", "\xef\xbb\xbfsrc,dst\n0,1\n", "0>1"},
		"quotes":                {"e.csv", "\"src\",\"dst\"\n\"0\",1\n1 , \"0\" \n", "0>1 1>0"},
		"quoted text":           {"e.csv", "\"a,b\",\"say \"\"hi\"\"\"\nx,\"two\nlines\"\n", "a,b>say \"hi\" x>two\nlines"},
		"quoted blanks":         {"e.txt", "\"a b\" c\nc \"a b\"\n", "a b>c c>a b"},
		"quote within":          {"e.csv", "5\",6\n", "5\">6"},
		"packed":                {"e.csv.gz", "0,1\n1,0\n", "0>1 1>0"},
		"weights by position":   {"e.csv", "0,1,0.5\n1,0,3\n", "0>1:0.5 1>0:3"},
		"weight first":          {"e.csv", "weight,src,dst\n0.5,0,1\n", "0>1:0.5"},
		"more columns":          {"e.csv", "time,src,dst\n5,0,1\n", "0>1"},
		"loops and repeats":     {"e.csv", "0,0\n0,0\n", "0>0 0>0"},
		"unknown ending":        {"e.dat", "0 1\n", "0>1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, filepath.Join(folder(t, map[string]string{c.file: c.text}), c.file))
			for range 2 {
				if got := strings.Join(edgesOf(t, s), " "); got != c.want {
					t.Errorf("edges %q, want %q", got, c.want)
				}
			}
		})
	}
}
