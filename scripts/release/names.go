package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// names are one version, as different readers want it.
type names struct {
	// pkg is for deb and rpm, which sort by it and know ~ as what comes before.
	pkg string
	// semantic is for Helm.
	semantic string
}

var (
	tagged = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)((?:-(?:alpha|beta|rc)[.0-9]*)?)(?:-(\d+)-(g[0-9a-f]+))?((?:-dirty)?)$`)
	bare   = regexp.MustCompile(`^([0-9a-f]{7,40})((?:-dirty)?)$`)
)

// packaged returns what a version of git describe is called in packages. A commit without
// a tag before it comes before all that have one, in the order of their dates.
func packaged(describe string, date time.Time) (names, error) {
	if m := bare.FindStringSubmatch(describe); m != nil {
		dirty := strings.ReplaceAll(m[2], "-", ".")
		stamp := date.Format("20060102150405") + ".g" + m[1] + dirty
		return names{pkg: "0.0.0~" + stamp, semantic: "0.0.0-" + stamp}, nil
	}
	m := tagged.FindStringSubmatch(describe)
	if m == nil {
		return names{}, fmt.Errorf("-version is %q: give what `git describe --tags --always --dirty` prints, such as v1.2.3, v1.2.3-rc.1, v1.2.3-4-g0123abc or a commit's hash", describe)
	}
	var after []string
	if m[3] != "" {
		after = append(after, m[3], m[4])
	}
	if m[5] != "" {
		after = append(after, "dirty")
	}
	n := names{pkg: m[1] + strings.Replace(m[2], "-", "~", 1), semantic: m[1] + m[2]}
	if len(after) > 0 {
		n.pkg += "+" + strings.Join(after, ".")
		n.semantic += "+" + strings.Join(after, ".")
	}
	return n, nil
}
