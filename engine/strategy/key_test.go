package strategy

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// bound are variables with a key of each kind.
type bound struct {
	word  string
	on    bool
	count int
	rows  int
	asked int
	share float64
	text  string
}

func (b *bound) keys() Keys {
	return Keys{
		Word(&b.word, "a.word", "help", "first", "second"),
		Switch(&b.on, "a.switch", "help"),
		Number(&b.count, "a.count", "help", Whole{Unit: "STEPS", Default: 3, Most: 9}),
		Number(&b.rows, "a.rows", "help", Whole{Unit: "ROWS", Zero: true, Of: "of rows"}),
		Number(&b.asked, "a.asked", "help", Whole{Unit: "N", Words: []string{"usual", Auto}}),
		Fraction(&b.share, "a.share", "SHARE", 1, "help"),
		Text(&b.text, "a.text", "X", "none", "help", func(value string) error { return json.Unmarshal([]byte(value), new(any)) }),
	}
}

func TestKeysSetWhatTheyAreBoundTo(t *testing.T) {
	usual := bound{"first", true, 3, 0, 0, 0, "none"}
	var b bound
	if b.keys(); b != usual {
		t.Errorf("by default: %+v", b)
	}
	values := map[string]string{
		"a.word": "second", "a.switch": "off", "a.count": "9", "a.rows": "0", "a.asked": "auto", "a.share": "0.5", "a.text": "{}", "b.word": "of others",
	}
	if err := b.keys().Parse(values); err != nil || b != (bound{"second", false, 9, 0, Asked, 0.5, "{}"}) {
		t.Errorf("%+v, %v", b, err)
	}
	if err := b.keys().Parse(nil); err != nil || b != usual {
		t.Errorf("without values: %+v, %v", b, err)
	}
	if err := b.keys().Parse(map[string]string{"a.share": "-0"}); err != nil || math.Signbit(b.share) {
		t.Errorf("a share of -0 is %v, %v", b.share, err)
	}
	for _, k := range b.keys() {
		value := map[string]string{"a.asked": "auto", "a.text": "7"}[k.Key]
		if value == "" {
			value = k.Default
		}
		if err := k.set(value); err != nil || k.get() != value {
			t.Errorf("%s=%s is %s: %v", k.Key, value, k.get(), err)
		}
	}
}

func TestWhatKeysRefuse(t *testing.T) {
	for given, want := range map[string]string{
		"a.word=third":   "{a.word}=third: it is one of first, second",
		"a.switch=yes":   "{a.switch}=yes: it is on or off",
		"a.count=0":      "{a.count}=0: it is a whole number from 1 to 9",
		"a.count=10":     "from 1 to 9",
		"a.count=1.5":    "from 1 to 9",
		"a.rows=-1":      "{a.rows}=-1: it is a whole number of rows from 0 to 1048576",
		"a.asked=0":      "{a.asked}=0: it is usual, auto, or a whole number from 1 to 1048576",
		"a.asked=-1":     "it is usual, auto, or a whole number",
		"a.share=1.01":   "{a.share}=1.01: it is a number from 0 to 1",
		"a.share=NaN":    "from 0 to 1",
		"a.share=-0.001": "from 0 to 1",
		"a.text={":       "{a.text}={: ",
	} {
		var b bound
		keys := b.keys()
		before := b
		key, value, _ := strings.Cut(given, "=")
		if err := keys.Parse(map[string]string{key: value}); err == nil || !strings.Contains(err.Error(), want) || b != before {
			t.Errorf("%s: %v, and leaves %+v", given, err, b)
		}
	}
}

// Copies of settings share no change.
func TestSettingsAreValues(t *testing.T) {
	one := Given("leap", "a.word=second")
	other := one.With("a.count=4", "a.word=")
	if one.Values["a.word"] != "second" || len(one.Values) != 1 || !reflect.DeepEqual(other.Values, map[string]string{"a.count": "4"}) {
		t.Errorf("%+v and %+v", one, other)
	}
	if none := other.With("a.count="); none.Values != nil {
		t.Errorf("without values: %#v", none)
	}
	defer func() {
		if recover() == nil {
			t.Error("a value without a key was taken")
		}
	}()
	Given("leap", "second")
}

func TestStoredSettingsThatAreNone(t *testing.T) {
	for _, text := range []string{`[]`, `{"leap":{"mode":["stay"]}}`, `{"leap":{"mode":null}}`, `{"wire":5}`, `{"values":{"a":1}}`, `{"strategy":5}`} {
		var s Settings
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s is read as %+v", text, s)
		}
	}
}
