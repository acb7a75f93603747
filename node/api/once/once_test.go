package once

import (
	"encoding/json"
	"strings"
	"testing"
)

// A field that is there twice is refused, however deep, and in whatever case: the decoder
// would take the last.
func TestAFieldIsThereOnce(t *testing.T) {
	for body, twice := range map[string]string{
		`{"name":"g","force":true}`:                                           "",
		`{"name":"g","name":"h"}`:                                             "name",
		`{"name":"g","revoke":true,"Name":"h"}`:                               "Name",
		`{"set":[{"key":"a","value":"b"},{"key":"c","value":"d"}]}`:           "",
		`{"set":[{"key":"a","value":"b"},{"key":"c","value":"d","key":"e"}]}`: "key",
		`{"a":{"b":1},"c":{"b":2},"b":"b"}`:                                   "",
		`{"a":["a","a",{"a":"a"}],"b":"a"}`:                                   "",
		`{"a":{"b":[[{}]],"c":1},"a":1}`:                                      "a",
		`"a"`:                                                                 "",
		`{"a":`:                                                               "",
		`]`:                                                                   "",
		``:                                                                    "",
	} {
		err := Check([]byte(body))
		if (err == nil) != (twice == "") || err != nil && !strings.Contains(err.Error(), `the field "`+twice+`" twice`) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What json writes of any document has no field twice, and is left as it is; a field that is
// added again is seen.
func FuzzFieldsOnce(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,{"c":null}]},"d":"e"}`, `[{"a":1},{"a":2}]`, `{"a":1,"a":2}`, `{"":"\u0061"}`, `{{`, `1 2`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = Check(b)
		var fields map[string]any
		if json.Unmarshal(b, &fields) != nil || len(fields) == 0 {
			return
		}
		for name := range fields {
			plain, err := json.Marshal(map[string]any{name: fields[name]})
			if err != nil {
				return
			}
			again := append(append(plain[:len(plain)-1:len(plain)-1], ','), plain[1:]...)
			if Check(again) == nil {
				t.Fatalf("nothing is there twice in %s", again)
			}
		}
	})
}
