// Package openapi makes an OpenAPI document from the routes of an API and the Go types that they
// read and write, and checks answers against it. It serves nothing, and knows no route of its own.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"
)

// API is what a document describes.
type API struct {
	Title, Version, Description string
	Operations                  []Operation
	// Failure is the type of every answer that is an error.
	Failure reflect.Type
	// Scopes are those of tokens, with what each may do.
	Scopes map[string]string
	// Comments are those of types and fields, by TYPE and TYPE.FIELD, the field as JSON has it.
	Comments map[string]string
	// Fields replaces the types of fields that are written in a way of their own. Each value may be
	// one of the types listed.
	Fields map[string][]reflect.Type
}

// Operation is one route.
type Operation struct {
	Method, Path string
	Summary      string
	Access       string // a sentence on who may use it
	Scopes       []string
	Query        []Parameter
	In, Out      reflect.Type // nil: none
	Optional     bool         // the body may be left out
	Media        string       // of the answer; "": the connection is upgraded
}

// Parameter is one of a request's query.
type Parameter struct{ Name, Description string }

type object = map[string]any

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// Document returns the document as indented JSON.
func Document(a API) ([]byte, error) {
	s := &schemas{api: a, known: object{}, from: map[string]reflect.Type{}}
	paths := object{}
	for _, o := range a.Operations {
		if o.Summary == "" || o.Access == "" {
			return nil, fmt.Errorf("%s %s has no description", o.Method, o.Path)
		}
		described, err := s.operation(o)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Method, o.Path, err)
		}
		at, is := paths[o.Path].(object)
		if !is {
			at = object{}
			paths[o.Path] = at
		}
		at[strings.ToLower(o.Method)] = described
	}
	doc := object{
		"openapi": "3.1.0",
		"info":    object{"title": a.Title, "version": a.Version, "description": a.Description},
		"paths":   paths,
		"components": object{
			"schemas":         s.known,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": scopes(a.Scopes)}},
		},
	}
	b, err := json.MarshalIndent(doc, "", " ")
	return append(b, '\n'), err
}

func scopes(list map[string]string) string {
	var lines []string
	for _, name := range sorted(list) {
		lines = append(lines, "`"+name+"`: "+list[name])
	}
	return strings.Join(lines, "\n")
}

func (s *schemas) operation(o Operation) (object, error) {
	params := []any{}
	for _, m := range inPath.FindAllStringSubmatch(o.Path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range o.Query {
		params = append(params, object{"name": q.Name, "in": "query", "description": q.Description, "schema": object{"type": "string"}})
	}
	failure, err := s.of(s.api.Failure)
	if err != nil {
		return nil, err
	}
	refused := object{"application/json": object{"schema": failure}}
	if o.Media == text {
		refused[text] = object{}
	}
	done, status := object{"description": "Done."}, fmt.Sprint(http.StatusOK)
	switch {
	case o.Media == "":
		done["description"], status = "The connection is upgraded.", fmt.Sprint(http.StatusSwitchingProtocols)
	case o.Out == nil:
		done["content"] = object{o.Media: object{}}
	default:
		answer, err := s.of(o.Out)
		if err != nil {
			return nil, err
		}
		if o.Media == lines {
			done["description"] = "One JSON document a line, until the stream ends."
		}
		done["content"] = object{o.Media: object{"schema": answer}}
	}
	described := object{
		"operationId": operationID(o),
		"summary":     o.Summary,
		"description": o.Access,
		"parameters":  params,
		"responses": object{
			status:    done,
			"default": object{"description": "It was refused, or failed: a sentence says why and what to do.", "content": refused},
		},
	}
	if o.In != nil {
		s.request = true
		body, err := s.of(o.In)
		s.request = false
		if err != nil {
			return nil, err
		}
		described["requestBody"] = object{"required": !o.Optional, "content": object{"application/json": object{"schema": body}}}
	}
	security := []any{object{}}
	if len(o.Scopes) > 0 {
		security = append(security, object{"token": o.Scopes})
	}
	described["security"] = security
	return described, nil
}

// The media types of streams of JSON and of text, which may also say what failed.
const (
	lines = "application/x-ndjson"
	text  = "text/plain"
)

// operationID returns a name for an operation in programs: GET /v1/jobs/{id}/watch is
// get_jobs_id_watch.
func operationID(o Operation) string {
	path := strings.TrimPrefix(o.Path, "/v1")
	words := strings.FieldsFunc(path, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
	if len(words) == 0 {
		words = []string{"page"}
	}
	return strings.ToLower(o.Method) + "_" + strings.Join(words, "_")
}
