package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Checker checks answers against a document of this package.
type Checker struct{ paths, schemas object }

// NewChecker reads a document.
func NewChecker(document []byte) (*Checker, error) {
	var doc struct {
		Paths      object `json:"paths"`
		Components struct {
			Schemas object `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read the API's description: %w", err)
	}
	return &Checker{doc.Paths, doc.Components.Schemas}, nil
}

// Operations lists what the document describes, as METHOD PATH, sorted.
func (c *Checker) Operations() (list []string) {
	for _, path := range sorted(c.paths) {
		for _, method := range sorted(c.paths[path].(object)) {
			list = append(list, strings.ToUpper(method)+" "+path)
		}
	}
	return list
}

// Answer returns an error unless the document allows this answer to a request by METHOD PATH, as
// Operations lists it. Of text and files it looks at the media type only.
func (c *Checker) Answer(operation string, status int, contentType string, body []byte) error {
	method, path, _ := strings.Cut(operation, " ")
	at, _ := c.paths[path].(object)
	o, is := at[strings.ToLower(method)].(object)
	if !is {
		return fmt.Errorf("%s is not described", operation)
	}
	all := o["responses"].(object)
	response, is := all[fmt.Sprint(status)].(object)
	if !is {
		if status == http.StatusOK {
			return fmt.Errorf("%s: no answer %d is described", operation, status)
		}
		response = all["default"].(object)
	}
	content, _ := response["content"].(object)
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("%s: an answer of the type %q", operation, contentType)
	}
	described, is := content[media].(object)
	if !is {
		return fmt.Errorf("%s: %s is not among the media types that are described: %v", operation, media, sorted(content))
	}
	schema, is := described["schema"].(object)
	if !is {
		return nil
	}
	documents := json.NewDecoder(bytes.NewReader(body))
	for n := 0; ; n++ {
		var v any
		err := documents.Decode(&v)
		switch {
		case errors.Is(err, io.EOF) && (n == 1 || media == lines):
			return nil
		case err != nil:
			return fmt.Errorf("%s: document %d of the answer: %w", operation, n, err)
		}
		if err := c.value(schema, v, "answer"); err != nil {
			return fmt.Errorf("%s: %w", operation, err)
		}
	}
}

// value returns an error unless v is as the schema says. at is where it is.
func (c *Checker) value(schema object, v any, at string) error {
	if ref, is := schema["$ref"].(string); is {
		target, known := c.schemas[strings.TrimPrefix(ref, refers)].(object)
		if !known {
			return fmt.Errorf("%s: there is no %s", at, ref)
		}
		return c.value(target, v, at)
	}
	if either, is := schema["anyOf"].([]any); is {
		var errs []error
		for _, one := range either {
			err := c.value(one.(object), v, at)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	wrong := fmt.Errorf("%s is %.80v and not %v", at, v, schema["type"])
	switch schema["type"] {
	case nil:
		return nil
	case "null":
		if v == nil {
			return nil
		}
	case "string":
		text, is := v.(string)
		if _, err := time.Parse(time.RFC3339Nano, text); is && (schema["format"] != "date-time" || err == nil) {
			return nil
		}
	case "boolean":
		if _, is := v.(bool); is {
			return nil
		}
	case "number":
		if _, is := v.(float64); is {
			return nil
		}
	case "integer":
		n, is := v.(float64)
		if least, bound := schema["minimum"].(float64); is && n == math.Trunc(n) && (!bound || n >= least) {
			return nil
		}
	case "array":
		list, is := v.([]any)
		if !is {
			return wrong
		}
		for i, one := range list {
			if err := c.value(schema["items"].(object), one, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case "object":
		return c.object(schema, v, at)
	}
	return wrong
}

func (c *Checker) object(schema object, v any, at string) error {
	fields, is := v.(object)
	if !is {
		return fmt.Errorf("%s is %.80v and not an object", at, v)
	}
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, is := fields[key.(string)]; !is {
			return fmt.Errorf("%s lacks %s", at, key)
		}
	}
	props, _ := schema["properties"].(object)
	others, _ := schema["additionalProperties"].(object)
	for _, key := range sorted(fields) {
		one, is := props[key].(object)
		if !is {
			one = others
		}
		if one == nil {
			return fmt.Errorf("%s has the field %s, which is not described", at, key)
		}
		if err := c.value(one, fields[key], at+"."+key); err != nil {
			return err
		}
	}
	return nil
}
