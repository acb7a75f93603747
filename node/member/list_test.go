package member

import "testing"

func TestNeeded(t *testing.T) {
	for want, voters := range map[string][]string{
		"n1, the only voter, must be up; if it is lost for good":               {"n1"},
		"more than half of the 3 voters must be up; if they are lost for good": {"n1", "n2", "n3"},
	} {
		if got := needed(voters); got != want {
			t.Errorf("of %v: %s", voters, got)
		}
	}
}
