package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Deep int `json:"deep"`
}

type Embedded struct {
	Own string `json:"own,omitempty"`
}

type sample struct {
	Name  string            `json:"name"`
	When  *time.Time        `json:"when"`
	Count *uint64           `json:"count,omitempty"`
	List  []inner           `json:"list"`
	Words map[string]string `json:"words"`
	Raw   json.RawMessage   `json:"raw"`
	Mixed []string          `json:"mixed"`
	Share float64           `json:"share,omitempty"`
	Is    bool              `json:"is,omitempty"`
	Quiet int               `json:"-"`
	Embedded
}

type refusal struct {
	Error string `json:"error"`
}

func about(operations ...Operation) API {
	return API{
		Title: "a", Version: "1", Failure: reflect.TypeFor[refusal](), Scopes: map[string]string{"read": "reads"}, Operations: operations,
		Comments: map[string]string{"sample": "sample is one", "sample.name": "what it is called", "Embedded.own": "of the embedded"},
		Fields:   map[string][]reflect.Type{"sample.mixed": {reflect.TypeFor[string](), reflect.TypeFor[inner]()}},
	}
}

func get(path string, out reflect.Type) Operation {
	return Operation{Method: "GET", Path: path, Summary: "Asks.", Access: "Anybody.", Scopes: []string{"read"}, Out: out, Media: "application/json"}
}

func made(t *testing.T, a API) *Checker {
	t.Helper()
	b, err := Document(a)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChecker(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswersAreChecked(t *testing.T) {
	stream := get("/s", reflect.TypeFor[inner]())
	stream.Media = lines
	c := made(t, about(get("/a/{id}", reflect.TypeFor[sample]()), stream))
	const whole = `{"name":"n","when":null,"list":[{"deep":1}],"words":null,"raw":{"x":[1]},"mixed":["a",{"deep":2}]}`
	with := func(old, other string) string { return strings.Replace(whole, old, other, 1) }
	for _, x := range []struct {
		operation string
		status    int
		media     string
		body      string
		says      string // "": it is right
	}{
		{"GET /a/{id}", 200, "application/json", whole, ""},
		{"GET /a/{id}", 200, "application/json; charset=utf-8", with(`null`, `"2026-01-02T03:04:05Z"`), ""},
		{"GET /a/{id}", 200, "application/json", with(`"name"`, `"own":"o","count":3,"share":0.5,"is":true,"name"`), ""},
		{"GET /a/{id}", 404, "application/json", `{"error":"there is none"}`, ""},
		{"GET /s", 200, lines, "{\"deep\":1}\n{\"deep\":2}\n", ""},
		{"GET /s", 200, lines, "", ""},
		{"GET /a/{id}", 200, "application/json", with(`"name":"n",`, ``), "lacks name"},
		{"GET /a/{id}", 200, "application/json", with(`"name"`, `"more":1,"name"`), "more, which is not described"},
		{"GET /a/{id}", 200, "application/json", with(`"n"`, `7`), "answer.name is 7"},
		{"GET /a/{id}", 200, "application/json", with(`"when":null`, `"when":"yesterday"`), "answer.when is yesterday"},
		{"GET /a/{id}", 200, "application/json", with(`[{"deep":1}]`, `null`), "answer.list is <nil>"},
		{"GET /a/{id}", 200, "application/json", with(`"deep":1`, `"deep":1.5`), "answer.list[0].deep is 1.5"},
		{"GET /a/{id}", 200, "application/json", with(`"name"`, `"count":-1,"name"`), "answer.count is -1"},
		{"GET /a/{id}", 200, "application/json", with(`"words":null`, `"words":{"a":1}`), "answer.words.a is 1"},
		{"GET /a/{id}", 200, "application/json", with(`"a",`, `true,`), "answer.mixed[0] is true"},
		{"GET /a/{id}", 200, "application/json", whole + whole, "document 2"},
		{"GET /a/{id}", 200, "application/json", whole[:9], "document 0"},
		{"GET /a/{id}", 200, "text/html", whole, "text/html is not"},
		{"GET /a/{id}", 404, "application/json", `{"err":"there is none"}`, "lacks error"},
		{"GET /s", 200, lines, "{\"deep\":1}\n{}\n", "lacks deep"},
		{"POST /a/{id}", 200, "application/json", whole, "POST /a/{id} is not described"},
	} {
		err := c.Answer(x.operation, x.status, x.media, []byte(x.body))
		if x.says == "" && err != nil || x.says != "" && (err == nil || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s %d %s: %v, and it should say %q", x.operation, x.status, x.body, err, x.says)
		}
	}
}

func TestDocument(t *testing.T) {
	post := get("/a", nil)
	post.Method, post.In, post.Query = "POST", reflect.TypeFor[inner](), []Parameter{{"force", "really"}}
	b, err := Document(about(get("/a/{id}", reflect.TypeFor[sample]()), post))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"description": "what it is called"`, `"description": "of the embedded"`, `"description": "sample is one"`, `"name": "id"`, `"name": "force"`,
		`"operationId": "get_a_id"`, `"operationId": "post_a"`, `"Sample"`, `"token": [`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the document has no %s", want)
		}
	}
	if strings.Contains(string(b), "Quiet") {
		t.Error("a field that is not written is described")
	}
	for name, o := range map[string]Operation{
		"has no description":  {Method: "GET", Path: "/b", Access: "Anybody."},
		"nothing is known of": get("/c", reflect.TypeFor[chan int]()),
	} {
		if _, err := Document(about(o)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestComments(t *testing.T) {
	says, err := Comments(".")
	if err != nil {
		t.Fatal(err)
	}
	if got := says["Operation"]; got != "Operation is one route." {
		t.Errorf("%q", got)
	}
	if got := says["Operation.Optional"]; got != "the body may be left out" {
		t.Errorf("%q", got)
	}
	if _, err := Comments("nowhere"); err == nil {
		t.Error("a folder that there is not was read")
	}
}
