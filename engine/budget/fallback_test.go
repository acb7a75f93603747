package budget

import (
	"errors"
	"slices"
	"testing"
)

func TestFallBack(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name string
		has  uint64
		say  []string
		left uint64
		fail bool
	}{
		{"enough", 100, nil, 100, false},
		{"a little less", 95, []string{"first"}, 95, false},
		{"all of the first", 90, []string{"first"}, 90, false},
		{"both", 70, []string{"first", "third"}, 70, false},
		{"never enough", 10, []string{"first", "third"}, 60, false},
		{"an error", 95, nil, 100, true},
	} {
		takes := uint64(100)
		way := func(name string, most uint64) Way {
			return Way{func() bool { return most > 0 }, func(bytes uint64) (string, error) {
				if c.fail {
					return "", lost
				}
				some := min((bytes+1)/2, most) // which is less than is asked for
				takes, most = takes-some, most-some
				return name, nil
			}}
		}
		said, err := FallBack(c.has, func() (uint64, error) { return takes, nil }, way("first", 10), way("second", 0), way("third", 30))
		if !slices.Equal(said, c.say) || takes != c.left || (err != nil) != c.fail {
			t.Errorf("%s: %q, %d left, %v", c.name, said, takes, err)
		}
	}
}
