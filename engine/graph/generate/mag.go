package generate

import "slices"

// The types of ogbn-mag, in the order of their names.
const (
	magAuthor = iota
	magField
	magInstitution
	magPaper
)

// typedPresets are graphs with types. Names and sizes are those of OGB.
var typedPresets = []*typedShape{{
	name:  "mag",
	shape: shape{"ogbn-mag", 0.855, 0.088},
	types: []typeShape{
		magAuthor: {"author", 1_134_649}, magField: {"field_of_study", 59_965},
		magInstitution: {"institution", 8_740}, magPaper: {"paper", 736_389},
	},
	relations: []relationShape{
		{magAuthor, "affiliated_with", magInstitution, 1_043_998, 0.5},
		{magAuthor, "writes", magPaper, 7_145_660, 0.6},
		{magPaper, "cites", magPaper, 5_416_271, 0.6},
		{magPaper, "has_topic", magField, 7_505_078, 0.6},
	},
	learnt: magPaper, features: 128, classes: 349, keeps: 0.8,
}}

// typedShapeOf returns the shape of a preset with types, or nil if no such preset has the name.
func typedShapeOf(preset string) *typedShape {
	if i := slices.IndexFunc(typedPresets, func(s *typedShape) bool { return s.name == preset }); i >= 0 {
		return typedPresets[i]
	}
	return nil
}

// typed returns the graph with types that o asks for; nil if o asks for another.
func (o Options) typed() (*typedGraph, error) {
	s := typedShapeOf(o.Preset)
	if s == nil {
		return nil, nil
	}
	if rest := (Options{Preset: o.Preset, Seed: o.Seed, Scale: o.Scale}); o != rest {
		return nil, errPreset(o.Preset)
	}
	return newTyped(s, o.Seed, o.Scale)
}
