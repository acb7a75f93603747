package recipe

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// SameSharing reports whether a run that began with settings a learns the same with b.
type SameSharing func(a, b *strategy.Settings) bool

// SameSweep is SameRecipe of each model.
func SameSweep(now, was Recipe, same SameSharing) error {
	if len(now.Sweep) != len(was.Sweep) {
		return fmt.Errorf("it is of %s, and this is of %d", Count(max(1, len(was.Sweep)), "model"), max(1, len(now.Sweep)))
	}
	for i := range now.Sweep {
		if err := SameRecipe(now.Sweep[i].Recipe, was.Sweep[i].Recipe, same); err != nil {
			return fmt.Errorf("model %d: %w", i, err)
		}
	}
	now.Sweep, was.Sweep = nil, nil
	return SameRecipe(now, was, same)
}

// SameRecipe returns an error if two recipes differ in more than may change in a run:
// how long training goes on, at which rate, and how nodes share it as long as they add
// up alike.
func SameRecipe(now, was Recipe, same SameSharing) error {
	if same(&was.Sharing, &now.Sharing) {
		now.Sharing = was.Sharing
	}
	now.Epochs, now.Patience, now.Rate, now.Schedule = was.Epochs, was.Patience, was.Rate, was.Schedule
	if len(now.Fanouts) == 0 && len(was.Fanouts) == 0 {
		now.Fanouts = was.Fanouts // none, as when no fanouts were written
	}
	if now.Model.Model != was.Model.Model {
		return fmt.Errorf("it is of a %s, and this is a %s", was.Model.Model, now.Model.Model)
	}
	if reflect.DeepEqual(now, was) {
		return nil
	}
	a, b := reflect.ValueOf(now), reflect.ValueOf(was)
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		if a.Field(i).Kind() != reflect.Struct {
			return fmt.Errorf("its recipe has %v for %s, and this one %v", b.Field(i), name, a.Field(i))
		}
		return fmt.Errorf("its recipe has another %s: %s, and this one %s", name, text(b.Field(i)), text(a.Field(i)))
	}
	return nil
}

func text(v reflect.Value) string {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	return string(b)
}
