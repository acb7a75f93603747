package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/spf13/pflag"
)

// value is the value of a setting and its source.
type value struct {
	text []string
	from string
}

func (v value) one() string { return strings.Join(v.text, ", ") }

// byDefault is the source of a value that nobody gave.
const byDefault = "default"

// errConfig marks wrong settings, as opposed to a file that can't be read.
type errConfig struct{ error }

// gather returns the value of each setting: from its flag, else the environment, else the file,
// else its default.
func gather(settings []setting, flags *pflag.FlagSet, environ []string) (map[string]value, error) {
	env, err := environment(settings, environ)
	if err != nil {
		return nil, err
	}
	file := map[string]value{}
	if path := cmp.Or(flags.Lookup("config").Value.String(), env["HOPMESH_CONFIG"]); path != "" {
		if file, err = readFile(settings, path); err != nil {
			return nil, err
		}
	}
	values := make(map[string]value, len(settings))
	for _, s := range settings {
		f := flags.Lookup(s.key)
		fromFile, inFile := file[s.key]
		switch given := env[s.env()]; {
		case f.Changed:
			values[s.key] = value{flagText(f), "flag --" + s.key}
		case given != "":
			text := []string{given}
			if s.kind == words {
				text = splitList(given)
			}
			values[s.key] = value{text, "environment " + s.env()}
		case inFile:
			values[s.key] = fromFile
		case s.fallback != "":
			values[s.key] = value{[]string{s.fallback}, byDefault}
		default:
			values[s.key] = value{nil, byDefault}
		}
	}
	return values, nil
}

func flagText(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func splitList(s string) []string {
	list := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// environment returns the HOPMESH_* variables. An unknown one is an error.
func environment(settings []setting, environ []string) (map[string]string, error) {
	known := otherEnvironment()
	for _, s := range settings {
		known = append(known, s.env())
	}
	env := map[string]string{}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "HOPMESH_") {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, errConfig{fmt.Errorf("the environment sets %s, which hopmesh does not know%s", name, usage.DidYouMean(name, known))}
		}
		env[name] = text
	}
	return env, nil
}

// readFile reads settings from a TOML file.
func readFile(settings []setting, path string) (map[string]value, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fmt.Errorf("the config file %s can't be read: %w", path, err)
	}
	return parseFile(settings, path, b)
}

func parseFile(settings []setting, path string, b []byte) (map[string]value, error) {
	var found map[string]toml.Primitive
	meta, err := toml.Decode(string(b), &found)
	if err != nil {
		if p, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, errConfig{fmt.Errorf("%s, line %d, is not valid TOML: %s", path, p.Position.Line, p.Message)}
		}
		return nil, errConfig{fmt.Errorf("%s is not valid TOML: %w", path, err)}
	}
	keys := make([]string, 0, len(settings))
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	values := map[string]value{}
	// In the order of the file, so that the first mistake is reported.
	for _, k := range meta.Keys() {
		if _, seen := values[k[0]]; seen {
			continue // part of a value that was read already
		}
		key, at := k[0], fmt.Sprintf("%s, line %d", path, lineOf(&meta, found, k))
		i := slices.Index(keys, key)
		if i < 0 {
			return nil, errConfig{fmt.Errorf("%s: there is no key %q%s", at, k.String(), usage.DidYouMean(k.String(), slices.Clone(keys)))}
		}
		text, err := fileText(&meta, settings[i], found[key])
		if err != nil {
			return nil, errConfig{fmt.Errorf("%s: %w", at, err)}
		}
		values[key] = value{text, at}
	}
	return values, nil
}

// fileText returns one value of the file as text, if it has a type of its setting.
func fileText(meta *toml.MetaData, s setting, p toml.Primitive) ([]string, error) {
	var v any
	if err := meta.PrimitiveDecode(p, &v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		if s.kind != truth {
			return []string{v}, nil
		}
	case bool:
		if s.kind == truth {
			return []string{strconv.FormatBool(v)}, nil
		}
	case int64:
		if s.key == "memory" {
			return []string{strconv.FormatInt(v, 10)}, nil
		}
	case []any:
		list := []string{}
		for _, e := range v {
			if text, ok := e.(string); ok {
				list = append(list, text)
			}
		}
		if s.kind == words && len(list) == len(v) {
			return list, nil
		}
	}
	should := map[kind]string{word: "a string", words: "a list of strings", truth: "true or false"}[s.kind]
	return nil, fmt.Errorf("%s must be %s", s.key, should)
}

// lineOf returns the line of a key. The decoder has positions only in its errors, so it is
// made to fail. The outer part of a dotted key has no line.
func lineOf(meta *toml.MetaData, in map[string]toml.Primitive, key toml.Key) int {
	err := meta.PrimitiveDecode(in[key[0]], refuser{})
	if e, ok := errors.AsType[toml.ParseError](err); ok && e.Position.Line > 0 {
		return e.Position.Line
	}
	var inner map[string]toml.Primitive
	if len(key) == 1 || meta.PrimitiveDecode(in[key[0]], &inner) != nil {
		return 0
	}
	return lineOf(meta, inner, key[1:])
}

// refuser fails to decode from anything.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }
