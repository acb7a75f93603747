package train

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
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/pflag"
)

// notInSpec are flags about how the command runs instead of what it trains.
var notInSpec = []string{"spec", "watch", "addr", "api-token-file", "json", "help"}

// readSpec sets flags that were not given from a TOML file. Its keys are names of flags; the
// tables [set] and [sweep] hold the values of --set and --sweep, in the order of their lines.
func readSpec(f *pflag.FlagSet, path string) error {
	b, err := specText(path)
	if err != nil {
		return err
	}
	var found map[string]any
	meta, err := toml.Decode(string(b), &found)
	if err != nil {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return errSpec{fmt.Errorf("%s, line %d, is not valid TOML: %s", path, p.Position.Line, p.Message)}
		}
		return errSpec{fmt.Errorf("%s is not valid TOML: %w", path, err)}
	}
	if len(found) == 0 {
		return errSpec{fmt.Errorf("the spec %s is empty: write settings into it, such as a line dataset = \"cora\", or leave --spec out", path)}
	}
	given := givenFlags(f)
	var known []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(notInSpec, flag.Name) {
			known = append(known, flag.Name)
		}
	})
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if slices.Contains(notInSpec, key) && f.Lookup(key) != nil {
			return errSpec{fmt.Errorf("%s: %s is about how the command runs and not what it trains: give it as a flag, --%s", path, key, key)}
		}
		if !slices.Contains(known, key) {
			return errSpec{fmt.Errorf("%s: there is no key %q%s", path, key, usage.DidYouMean(key, slices.Clone(known)))}
		}
		if key == "sweep" {
			err = sweepFromSpec(f, found, meta.Keys(), given)
		} else {
			err = fromSpec(f, key, found[key], given)
		}
		if err != nil {
			return errSpec{fmt.Errorf("%s: %w", path, err)}
		}
	}
	return nil
}

// mostSpec is the largest size of a spec.
const mostSpec = 1 << 20

// specText reads a spec. It fails unless that is a small regular file: reading a pipe might
// never end.
func specText(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case info.IsDir():
		return nil, errSpec{fmt.Errorf("the spec %s is a directory: name a TOML file", path)}
	case !info.Mode().IsRegular():
		return nil, errSpec{fmt.Errorf("the spec %s is a device, a pipe or a socket: write the spec into a TOML file and name that", path)}
	case info.Size() > mostSpec:
		return nil, errSpec{fmt.Errorf("the spec %s has %d bytes, and a spec has at most %d: name the TOML file with the settings", path, info.Size(), mostSpec)}
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

// givenFlags returns the names of the flags that were given, and the keys of --set and --sweep. Of a
// flag that stands for a setting, and of that setting, both were given if one was.
func givenFlags(f *pflag.FlagSet) map[string]bool {
	given := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) {
		given[flag.Name] = true
		if list, is := flag.Value.(pflag.SliceValue); is {
			for _, s := range list.GetSlice() {
				given[keyIn(s)] = true
			}
		}
	})
	for _, s := range append([]setting{{"loss", "train.loss"}}, asSettings...) {
		if given[s.flag] || given[s.key] {
			given[s.flag], given[s.key] = true, true
		}
	}
	return given
}

// keyIn returns the key of KEY=VALUE.
func keyIn(s string) string {
	key, _, _ := strings.Cut(s, "=")
	return key
}

// fromSpec sets one flag from the file, unless the flag was given.
func fromSpec(f *pflag.FlagSet, key string, value any, given map[string]bool) error {
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
		settings = slices.DeleteFunc(settings, func(s string) bool { return given[keyIn(s)] })
		return list.Replace(append(settings, list.GetSlice()...))
	}
	if given[key] {
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
		return fmt.Errorf("%s = %s is wrong: it must be a value for --%s", key, text, key)
	}
	return nil
}

// sweepFromSpec sets --sweep from the table [sweep], without keys that flags have, unless
// --sweep was given. A decoded table has no order, so that of the keys in the file is used.
func sweepFromSpec(f *pflag.FlagSet, found map[string]any, keys []toml.Key, given map[string]bool) error {
	table, ok := found["sweep"].(map[string]any)
	if !ok {
		return errors.New("sweep must be a table, such as [sweep] with a line lr = [0.01, 0.001] below it")
	}
	list, err := flatten("sweep", "", table)
	if err != nil || given["sweep"] {
		return err
	}
	list = slices.DeleteFunc(list, func(s string) bool { return given[keyIn(s)] })
	if err := noConflicts(list, found); err != nil {
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

// noConflicts returns an error if a key of [sweep] also has a single value in the file.
func noConflicts(sweep []string, found map[string]any) error {
	table, _ := found["set"].(map[string]any) // else fromSpec fails
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

// flatten returns KEY=VALUE for each value in a table and the tables inside it. of is the name
// of the table.
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

// scalar returns a value as text for a flag, and a list as its values with commas.
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

// errSpec marks a spec that is wrong, as opposed to one that can't be read.
type errSpec struct{ error }
