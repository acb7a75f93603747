// Package wire is the envelope of what nodes that make a dataset together send each other:
// what a message is and of which dataset, and whether an answer is a result, a delay or an
// error.
package wire

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// MaxMessage and MaxReply bound what travels at once, in bytes.
const (
	MaxMessage = 2 << 20
	MaxReply   = 4 << 20
)

// Version is raised whenever nodes say something else to each other, or otherwise.
const Version = 1

const (
	headBytes   = 16      // of a message: what it is, the version, padding, the dataset's id
	maxSentence = 4 << 10 // of an answer
)

// The first byte of an answer.
const (
	isResult = iota
	isRunning
	isError // a sentence
)

// ErrMessage is the error of a message that no node sends which runs this version.
var ErrMessage = errors.New("the other node's message can't be understood: run the same version on all nodes")

// Head returns the beginning of a message about the dataset with this id.
func Head(say byte, id string) ([]byte, error) {
	out := make([]byte, headBytes)
	out[0], out[1] = say, Version
	if len(id) != 16 {
		return nil, fmt.Errorf("%.40q is no dataset's id", id)
	}
	if _, err := hex.Decode(out[8:], []byte(id)); err != nil {
		return nil, fmt.Errorf("%.40q is no dataset's id", id)
	}
	return out, nil
}

// Split splits a message.
func Split(in []byte) (say byte, id string, body []byte, err error) {
	if len(in) < headBytes || in[1] != Version {
		return 0, "", nil, ErrMessage
	}
	return in[0], hex.EncodeToString(in[8:headBytes]), in[headBytes:], nil
}

// Answer returns the answer to a message: an error, or that the result is not there yet, or
// the result.
func Answer(result []byte, done bool, err error) []byte {
	switch {
	case err != nil:
		text := err.Error()
		return append([]byte{isError}, text[:min(len(text), maxSentence)]...)
	case !done:
		return []byte{isRunning}
	}
	return append([]byte{isResult}, result...)
}

// Result splits an answer.
func Result(b []byte) (result []byte, done bool, err error) {
	if len(b) == 0 {
		return nil, false, ErrMessage
	}
	switch b[0] {
	case isResult:
		return b[1:], true, nil
	case isRunning:
		return nil, false, nil
	case isError:
		return nil, false, errors.New(printable(b[1:min(len(b), 1+maxSentence)]))
	}
	return nil, false, ErrMessage
}

// printable replaces what a terminal would obey.
func printable(b []byte) string {
	out := []rune(string(b))
	for i, r := range out {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			out[i] = '?'
		}
	}
	return string(out)
}
