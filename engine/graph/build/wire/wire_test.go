package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestMessages(t *testing.T) {
	const id = "0123456789abcdef"
	head, err := Head(7, id)
	if err != nil {
		t.Fatal(err)
	}
	if say, of, body, err := Split(append(head, "body"...)); say != 7 || of != id || string(body) != "body" || err != nil {
		t.Error(say, of, body, err)
	}
	if _, _, _, err := Split(head[:len(head)-1]); err == nil {
		t.Error("half a head")
	}
	other := append([]byte{}, head...)
	other[1] = Version + 1
	if _, _, _, err := Split(other); !errors.Is(err, ErrMessage) {
		t.Errorf("a message of another version: %v", err)
	}
	for _, bad := range []string{"", "0123", id + "00", strings.Repeat("x", 16)} {
		if _, err := Head(7, bad); err == nil {
			t.Errorf("a head for %q", bad)
		}
	}
}

func TestAnswers(t *testing.T) {
	if b, done, err := Result(Answer([]byte("result"), true, nil)); string(b) != "result" || !done || err != nil {
		t.Error(b, done, err)
	}
	if b, done, err := Result(Answer(nil, false, nil)); len(b) > 0 || done || err != nil {
		t.Error(b, done, err)
	}
	long := errors.New("red \x1b[31m" + strings.Repeat("x", 2*maxSentence))
	if _, _, err := Result(Answer(nil, true, long)); err == nil || len(err.Error()) != maxSentence || !strings.HasPrefix(err.Error(), "red ?[31m") {
		t.Error(err)
	}
	for _, b := range [][]byte{nil, {9}} {
		if _, _, err := Result(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%v: %v", b, err)
		}
	}
}
