package api

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
)

// A route is one operation of the API. The handler and the API's description are both made of
// it, and the types in it are those that its functions read and write, so the two can't differ.
type route struct {
	pattern string // as http.ServeMux has it
	who     who
	says    string // one sentence
	query   []parameter
	work
}

// who says who may make a request, from the many to the few.
type who int

const (
	anybody   who = iota // who reaches an address of the API
	readers              // over TLS: who has a token
	operators            // over TLS: who has a token to operate; on loopback: who knows the secret
	owners               // on loopback: who knows the secret; over TLS nobody, since it lets others in or shows keys
	programs             // who reaches the socket
)

// A parameter is one of a request's query.
type parameter struct {
	name, says string
}

// work is what a route does.
type work struct {
	in, out reflect.Type // of the JSON that it reads and writes; nil: none
	some    bool         // the request's body may be left out
	media   string       // of the answer
	serve   http.HandlerFunc
}

// The media types of answers.
const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson" // one JSON document a line, while there are more
	mediaFile  = "application/octet-stream"
	mediaText  = "text/plain"
	mediaPage  = "text/html"
)

// none stands for a request without a body.
type none struct{}

func typeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[none]() {
		return t
	}
	return nil
}

// asks answers with what do returns.
func asks[Out any](do func(*http.Request) (Out, error)) work {
	return takes(func(r *http.Request, _ none) (Out, error) { return do(r) })
}

// takes reads the request's body and answers with what do returns.
func takes[In, Out any](do func(*http.Request, In) (Out, error)) work {
	return work{in: typeOf[In](), out: typeOf[Out](), media: mediaJSON, serve: func(w http.ResponseWriter, r *http.Request) {
		q, err := receive[In](w, r)
		if err != nil {
			fail(w, err)
			return
		}
		v, err := do(r, q)
		answer(w, v, err)
	}}
}

// runs reads the request's body and answers with a line for each event of do, and for how it
// ends.
func runs[In any, E event[E]](do func(ctx context.Context, r *http.Request, q In, tell func(E)) (E, error)) work {
	return work{in: typeOf[In](), out: typeOf[E](), media: mediaLines, serve: func(w http.ResponseWriter, r *http.Request) {
		q, err := receive[In](w, r)
		if err != nil {
			fail(w, err)
			return
		}
		answerOperation(w, r, func(ctx context.Context, tell func(E)) (E, error) { return do(ctx, r, q, tell) })
	}}
}

// follows answers with a line for each value, until the channel is closed.
func follows[T any](do func(*http.Request) (<-chan T, error)) work {
	return work{out: typeOf[T](), media: mediaLines, serve: func(w http.ResponseWriter, r *http.Request) {
		values, err := do(r)
		if err != nil {
			fail(w, err)
			return
		}
		stream(w, values)
	}}
}

// delivers reads the request's body and answers with the file that do writes.
func delivers[In any](do func(w http.ResponseWriter, r *http.Request, q In, to io.Writer) error) work {
	return work{in: typeOf[In](), media: mediaFile, serve: func(w http.ResponseWriter, r *http.Request) {
		q, err := receive[In](w, r)
		if err != nil {
			fail(w, err)
			return
		}
		deliver(w, func(to io.Writer) error { return do(w, r, q, to) })
	}}
}

// serves answers with what h writes, of a media type.
func serves(media string, h http.HandlerFunc) work { return work{media: media, serve: h} }

// orNothing lets a request leave its body out.
func (k work) orNothing() work {
	serve := k.serve
	k.some = true
	k.serve = func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			r.Body = io.NopCloser(strings.NewReader("{}"))
		}
		serve(w, r)
	}
	return k
}

// receive reads a request's body, if there should be one, and checks it.
func receive[In any](w http.ResponseWriter, r *http.Request) (q In, err error) {
	if typeOf[In]() == nil {
		return q, nil
	}
	if err := decode(w, r, &q); err != nil {
		return q, err
	}
	if c, is := any(q).(interface{ Check() error }); is {
		err = c.Check()
	}
	return q, err
}
