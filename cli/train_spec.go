package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// notInSpec are flags that say how a command is run and not what is trained.
var notInSpec = []string{"spec", "watch", "addr", "json", "help"}

// readSpec gives flags that were not given what a TOML file says. Its keys are their
// names; the table [set] holds what --set would, and the table
// [sweep] what --sweep would, in the order of its lines.
func readSpec(f *pflag.FlagSet, path string) error {
	b, err := specText(path)
	if err != nil {
		return err
	}
	var found map[string]any
	meta, err := toml.Decode(string(b), &found)
	if err != nil {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return errConfig{fmt.Errorf("%s, line %d, is no TOML: %s", path, p.Position.Line, p.Message)}
		}
		return errConfig{fmt.Errorf("%s is no TOML: %w", path, err)}
	}
	if len(found) == 0 {
		return errConfig{fmt.Errorf("the spec %s says nothing: write what flags would say into it, such as a line dataset = \"cora\", or leave --spec out", path)}
	}
	said := saidByFlags(f)
	var known []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(notInSpec, flag.Name) {
			known = append(known, flag.Name)
		}
	})
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if slices.Contains(notInSpec, key) && f.Lookup(key) != nil {
			return errConfig{fmt.Errorf("%s: %s says how a command is run and not what is trained: give it as a flag, --%s", path, key, key)}
		}
		if !slices.Contains(known, key) {
			return errConfig{fmt.Errorf("%s: there is no key %q%s", path, key, didYouMean(key, slices.Clone(known)))}
		}
		if key == "sweep" {
			err = sweepFromSpec(f, found, meta.Keys(), said)
		} else {
			err = fromSpec(f, key, found[key], said)
		}
		if err != nil {
			return errConfig{fmt.Errorf("%s: %w", path, err)}
		}
	}
	return nil
}

// mostSpec is more than anybody writes by hand, and little to read.
const mostSpec = 1 << 20

// specText reads a spec, if it is a file that a spec could be. A pipe, which nobody may
// ever write to, is not opened.
func specText(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.IsDir():
		return nil, errConfig{fmt.Errorf("the spec %s is a directory: name a TOML file", path)}
	case !info.Mode().IsRegular():
		return nil, errConfig{fmt.Errorf("the spec %s is a device, a pipe or a socket: write it into a TOML file, and name that", path)}
	case info.Size() > mostSpec:
		return nil, errConfig{fmt.Errorf("the spec %s has %d bytes, and a spec at most %d: name the TOML file that says what to train", path, info.Size(), mostSpec)}
	default:
		var b []byte
		if b, err = os.ReadFile(path); err == nil {
			return b, nil
		}
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return nil, fmt.Errorf("the spec %s can't be read: %w", path, err)
}

// saidByFlags is all that flags say, by its name: that of a flag, or the key of a --set or
// a --sweep.
func saidByFlags(f *pflag.FlagSet) map[string]bool {
	said := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) {
		said[flag.Name] = true
		if list, is := flag.Value.(pflag.SliceValue); is {
			for _, s := range list.GetSlice() {
				said[keyIn(s)] = true
			}
		}
	})
	return said
}

// keyIn is the key of KEY=VALUE.
func keyIn(s string) string {
	key, _, _ := strings.Cut(s, "=")
	return key
}

// fromSpec gives one flag what the file says, unless flags say something else.
func fromSpec(f *pflag.FlagSet, key string, value any, said map[string]bool) error {
	list, isList := f.Lookup(key).Value.(pflag.SliceValue)
	if key == "set" {
		table, ok := value.(map[string]any)
		if !ok {
			return errors.New("set must be a table, such as [set] with a line sage.aggregator = \"max\" below it")
		}
		settings, err := flatten("set", "", table)
		if err != nil {
			return err
		}
		settings = slices.DeleteFunc(settings, func(s string) bool { return said[keyIn(s)] })
		return list.Replace(append(settings, list.GetSlice()...))
	}
	if said[key] {
		return nil
	}
	if values, ok := value.([]any); ok && isList {
		for _, v := range values {
			text, err := scalar(key, v)
			if err != nil {
				return err
			}
			if err := f.Set(key, text); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	}
	text, err := scalar(key, value)
	if err != nil {
		return err
	}
	if err := f.Set(key, text); err != nil {
		return fmt.Errorf("%s = %s does not fit: it is what --%s takes", key, text, key)
	}
	return nil
}

// sweepFromSpec takes the table [sweep] but for what flags say, unless there is a --sweep.
// A table has no order, so keys are those of the file in theirs.
func sweepFromSpec(f *pflag.FlagSet, found map[string]any, keys []toml.Key, said map[string]bool) error {
	table, ok := found["sweep"].(map[string]any)
	if !ok {
		return errors.New("sweep must be a table, such as [sweep] with a line lr = [0.01, 0.001] below it")
	}
	list, err := flatten("sweep", "", table)
	if err != nil || said["sweep"] {
		return err
	}
	list = slices.DeleteFunc(list, func(s string) bool { return said[keyIn(s)] })
	if err := saidTwice(list, found); err != nil {
		return err
	}
	place := map[string]int{}
	for i, key := range keys {
		if key[0] == "sweep" {
			place[strings.Join(key[1:], ".")] = i
		}
	}
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Compare(place[keyIn(a)], place[keyIn(b)])
	})
	for _, s := range list {
		if err := f.Set("sweep", s); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}

// saidTwice refuses what a file gives one value and has in [sweep], too.
func saidTwice(sweep []string, found map[string]any) error {
	table, _ := found["set"].(map[string]any) // or nothing, of which fromSpec says so
	settings, err := flatten("set", "", table)
	if err != nil {
		return err
	}
	for _, s := range sweep {
		key := keyIn(s)
		if _, is := found[key]; is {
			return fmt.Errorf("%s has a line of its own and one in [sweep]: leave one of the two out", key)
		}
		if slices.ContainsFunc(settings, func(s string) bool { return keyIn(s) == key }) {
			return fmt.Errorf("%s has a line in [set] and one in [sweep]: leave one of the two out", key)
		}
	}
	return nil
}

// flatten makes KEY=VALUE of the table that is called of, whose keys may have dots or be
// tables.
func flatten(of, prefix string, table map[string]any) ([]string, error) {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if inner, ok := table[key].(map[string]any); ok {
			more, err := flatten(of, prefix+key+".", inner)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
			continue
		}
		text, err := scalar(of+"."+prefix+key, table[key])
		if err != nil {
			return nil, err
		}
		list = append(list, prefix+key+"="+text)
	}
	return list, nil
}

// scalar writes a value as a flag takes it; a list as its parts with commas.
func scalar(key string, value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case []any:
		var parts []string
		for _, part := range v {
			if _, inner := part.([]any); inner {
				return "", fmt.Errorf("%s is a list with a list in it: give its values in one list", key)
			}
			text, err := scalar(key, part)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), nil
	}
	return "", fmt.Errorf("%s must be a string, a number, true or false, or a list of these", key)
}
