package strategy

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	errShare  = errors.New("it is a number from 0 to 1")
	errPseudo = fmt.Errorf("it is a number from 0 to %d", mostCount)
)

// some sets a number from 1 to most, or the default, stored as 0. The default may be
// given by the word usual, if not "".
func some(value, usual string, to *int, most int) error {
	if value == usual && usual != "" {
		*to = 0
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		word := ""
		if usual != "" {
			word = usual + ", or "
		}
		return fmt.Errorf("it is %sa whole number from 1 to %d", word, most)
	}
	*to = n
	return nil
}

func someOr(n int, usual string) string {
	if n == 0 {
		return usual
	}
	return strconv.Itoa(n)
}

func setPeriod(s *Settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostCount {
		return fmt.Errorf("it is a whole number of epochs from 1 to %d", mostCount)
	}
	if n == UsualPeriod {
		n = 0
	}
	s.Grappa.Period = n
	return nil
}

func setShrink(s *Settings, value string) error {
	return within(value, &s.Grappa.Shrink, 1, errShare)
}

func setPseudo(s *Settings, value string) error {
	return within(value, &s.Grappa.Pseudo, mostCount, errPseudo)
}

// within sets a number from 0 to most, and returns otherwise for any other value.
func within(value string, to *float64, most float64, otherwise error) error {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return otherwise
	}
	*to = x + 0 // -0 is 0
	return nil
}

// number formats a number as users write it.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
