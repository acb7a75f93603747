package desk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
)

func FuzzQuestion(f *testing.F) {
	for _, text := range []string{
		`{"type":"hello","version":1}`, `{"type":"room","bytes":64}`, `{"type":"sum","dtype":"f32","region":{"memory":1,"offset":64,"bytes":8},"weight":2}`,
		`{"type":"keep"}`, `{"type":"report","val_acc":2}`, `[]`, `{"type":"next"} x`, `{"type":"own","part":"all"}`,
		`{"type":"draw","region":{"memory":1,"offset":0,"bytes":16},"fanout":[3,0],"number":7}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := ParseQuestion(text)
		if err != nil {
			if len(err.Error()) > 500 {
				t.Errorf("%d bytes of error", len(err.Error()))
			}
			return
		}
		if q.Bytes > MostBytes && q.Type == Room || q.Type == Keep && q.Region == nil {
			t.Errorf("%+v", q)
		}
		again, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := ParseQuestion(again); err != nil || !reflect.DeepEqual(same, q) {
			t.Errorf("%s comes back as %+v, %v", text, same, err)
		}
	})
}

func TestWrongQuestions(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"dance"}`:                                         "there is no question of type \"dance\": ask one of hello, next",
		`{"type":"hello","version":2}`:                             "the program speaks version 2, and this node version 1",
		`{"type":"room","bytes":1073741825}`:                       "and 1073741824 is the most",
		`{"type":"room","bytes":-1}`:                               "must be one JSON object",
		`{"type":"sum","dtype":"f16"}`:                             "give f32 or f64",
		`{"type":"sum","dtype":"f32","weight":1e300}`:              "a sum has the weight 1e+300",
		`{"type":"keep"}`:                                          "names no region",
		`{"type":"own","part":"some"}`:                             "there are no vertices \"some\": ask for one of train, val, test, all",
		`{"type":"draw"}`:                                          "names no region",
		`{"type":"draw","region":{"bytes":12}}`:                    "vertices of 12 bytes: give 1 to 1048576 numbers",
		`{"type":"draw","region":{"bytes":8388616}}`:               "vertices of 8388616 bytes",
		`{"type":"draw","region":{"bytes":8},"number":4294967296}`: "has the number 4294967296",
		`{"type":"draw","region":{"bytes":8},"fanout":[3,-1]}`:     "a fan-out is -1",
		`{"type":"draw","region":{"bytes":8},"fanout":[` + strings.Repeat("1,", 32) + `1]}`: "a batch of 33 hops",
		`{"type":"report","train_acc":-0.5}`:                                                "train_acc is -0.5, and an accuracy is from 0 to 1",
		`{"type":"keep","region":{"memory":1,"offset":"a lot"}}`:                            "must be one JSON object",
		``: "must be one JSON object",
	} {
		if _, err := ParseQuestion([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// typeOf returns the type of an answer.
func typeOf(a Answer) string {
	switch b := a.Body.(type) {
	case Plain:
		return b.Type + b.Why + b.Error
	case Over:
		return b.Type
	}
	return "?"
}

// Questions wait while no run is there, and hear of the run's end and of the job's.
func TestRunsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New()
		p, err := d.Attach()
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan string)
		ask := func(kind string) {
			go func() {
				a, err := p.Ask(Question{Type: kind})
				if err != nil {
					heard <- err.Error()
					return
				}
				heard <- typeOf(a)
			}()
			synctest.Wait()
		}
		want := func(what string) {
			t.Helper()
			if got := <-heard; got != what {
				t.Errorf("%q, and not %q", got, what)
			}
		}
		if ask(Next); true {
			want("failedthe first question of a program must be hello")
		}
		ask(Hello) // no run is there
		v := d.Open()
		if d.Waits() {
			t.Error("nobody waits yet")
		}
		a, err := v.Next(t.Context())
		if err != nil || a.Type != Hello {
			t.Fatal(a, err)
		}
		a.Answer(Just("ready"))
		want("ready")

		ask(Next)
		v.Close(false, "a node is gone")
		want("againa node is gone")
		ask(Sum)
		want("againa node is gone")
		v = d.Open()
		ask(Sum) // it has not said hello to this run
		want("againa node is gone")
		ask(Hello)
		if a, err = v.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Answer(Just("ready"))
		want("ready")
		v.Close(true, "")
		ask(Next) // the job's end is not known yet
		d.End(&Ending{Done: true})
		want("done")
		d.End(&Ending{Why: "no room"})
		ask(Hello)
		want("failedno room")

		v = d.Open() // it was resumed
		ask(Hello)
		p.Leave()
		want(ErrLeft.Error())
		waits := make(chan error)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			_, err := v.Next(ctx)
			waits <- err
		}()
		synctest.Wait()
		if !d.Waits() {
			t.Error("nobody waits")
		}
		end := errors.New("superseded")
		cancel(end)
		if err := <-waits; !errors.Is(err, end) {
			t.Error(err)
		}
		if d.Waits() {
			t.Error("somebody waits")
		}
	})
}

// A program that comes while a run believes in another ends the run.
func TestAProgramThatComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New()
		v := d.Open()
		for range 2 {
			p, err := d.Attach()
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = p.Ask(Question{Type: Hello}) }()
			a, err := v.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a.Answer(Just("ready"))
			synctest.Wait()
			go func() { _, _ = p.Ask(Question{Type: Hello}) }() // once more
			if _, err := v.Next(t.Context()); !errors.Is(err, ErrLeft) {
				t.Error(err)
			}
			v.Forget()
			if a, err := v.Next(t.Context()); err != nil || a.Type != Hello {
				t.Errorf("its second hello is lost: %v", err)
			}
			p.Leave()
			v.Forget()
			synctest.Wait()
		}
	})
}

func TestMemory(t *testing.T) {
	d := New()
	m, err := d.Memory(100)
	if err != nil {
		t.Fatal(err)
	}
	file, bytes, err := m.File()
	if err != nil || bytes != 4096 && bytes%4096 != 0 {
		t.Fatal(bytes, err)
	}
	// What is mapped can't be cut off, which would kill the daemon.
	if err := file.Truncate(0); err == nil {
		t.Error("it can be cut")
	}
	m.Data[99] = 7
	var b [1]byte
	if _, err := file.ReadAt(b[:], 99); err != nil || b[0] != 7 {
		t.Errorf("it has %d, %v", b[0], err)
	}
	other, err := d.Memory(1)
	if err != nil || other.ID == m.ID {
		t.Error(other, err)
	}
	other.Close()
	m.Close()
	m.Close()
	if _, _, err := m.File(); !errors.Is(err, ErrClosed) || !m.Closed() {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
