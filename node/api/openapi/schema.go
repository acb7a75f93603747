package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// schemas are those of the types that a document names.
type schemas struct {
	api     API
	known   object                  // by the type's name
	from    map[string]reflect.Type // the same
	request bool                    // what is described now is read, not written
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// of returns the schema of a type: of a struct a reference.
func (s *schemas) of(t reflect.Type) (any, error) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}, nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64, reflect.Int32:
		return object{"type": "integer", "format": "int64"}, nil
	case reflect.Uint64, reflect.Uint32:
		return object{"type": "integer", "format": "uint64", "minimum": 0}, nil
	case reflect.Float64:
		return object{"type": "number"}, nil
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		items, err := s.of(t.Elem())
		return object{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem())
		return orNull(object{"type": "object", "additionalProperties": values}), err
	case reflect.Struct:
		return s.reference(t)
	}
	return nil, fmt.Errorf("nothing is known of the type %s", t)
}

// refers is what a reference to a schema begins with.
const refers = "#/components/schemas/"

// reference describes a struct, if it is not yet, and returns a reference to it.
func (s *schemas) reference(t reflect.Type) (any, error) {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if other, is := s.from[name]; is && other != t {
		return nil, fmt.Errorf("%s and %s have one name", other, t)
	}
	ref := object{"$ref": refers + name}
	if _, is := s.known[name]; is {
		return ref, nil
	}
	props, required := object{}, []string{}
	self := object{"type": "object", "properties": props}
	s.from[name], s.known[name] = t, self
	if says := s.api.Comments[t.Name()]; says != "" {
		self["description"] = says
	}
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || key == "-" {
			continue // the fields of an embedded struct are visible themselves
		}
		key = cmp.Or(key, f.Name)
		field, err := s.field(t, f, key, strings.Contains(options, "omit"))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), key, err)
		}
		props[key] = field
		if !strings.Contains(options, "omit") {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		slices.Sort(required)
		self["required"] = required
	}
	if s.request {
		self["additionalProperties"] = false
	}
	return ref, nil
}

func orNull(schema any) object { return object{"anyOf": []any{schema, object{"type": "null"}}} }

// field returns the schema of one field.
func (s *schemas) field(t reflect.Type, f reflect.StructField, key string, omitted bool) (any, error) {
	schema, err := s.of(f.Type)
	if special, is := s.api.Fields[t.Name()+"."+key]; is {
		var either []any
		for _, one := range special {
			var choice any
			if choice, err = s.of(one); err != nil {
				return nil, err
			}
			either = append(either, choice)
		}
		schema = object{"type": "array", "items": object{"anyOf": either}}
	}
	if err != nil {
		return nil, err
	}
	if f.Type.Kind() == reflect.Pointer && !omitted {
		schema = orNull(schema)
	}
	owner := t.Name()
	if len(f.Index) > 1 {
		owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type.Name()
	}
	if says := s.api.Comments[owner+"."+key]; says != "" {
		described := maps.Clone(schema.(object))
		described["description"] = says
		schema = described
	}
	return schema, nil
}
