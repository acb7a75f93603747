//go:build cuda

package sample

import (
	"fmt"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/cuda/kernels"
)

// programs holds the kernels that sampling uses. Their sources document them and how they
// are launched.
type programs struct {
	scanSums, scanApply                                                            *driver.Kernel
	drawCounts, drawSources, drawMean, drawMeanBF16                                *driver.Kernel
	numberRoots, numberCheck, numberPlaces, numberFirsts, numberNew, numberSources *driver.Kernel
	transposeCounts, transposeSort, transposeRows, transposeColumns                *driver.Kernel

	modules []*driver.Module
}

// listed is a kernel of a module with the sizes of its parameters.
type listed struct {
	to    **driver.Kernel
	name  string
	sizes []int
}

func (p *programs) load(on *driver.Thread) error {
	for module, list := range map[string][]listed{
		"scan": {
			{&p.scanSums, "scan_sums", []int{8, 8, 8}},
			{&p.scanApply, "scan_apply", []int{8, 8, 8, 8, 8, 8}},
		},
		"draw": {
			{&p.drawCounts, "draw_counts", []int{8, 8, 8, 8, 8, 8, 8, 8, 8, 4}},
			{&p.drawSources, "draw_sources", []int{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 8}},
		},
		"draw_mean": {
			{&p.drawMean, "draw_mean_f32", []int{8, 8, 4, 8, 8, 8, 8, 8, 8, 8, 4, 8, 8, 8, 4, 4}},
			{&p.drawMeanBF16, "draw_mean_bf16", []int{8, 8, 4, 8, 8, 8, 8, 8, 8, 8, 4, 8, 8, 8, 4, 4}},
		},
		"number": {
			{&p.numberRoots, "number_roots", []int{8, 8, 4, 8, 8}},
			{&p.numberCheck, "number_check", []int{8, 8, 4, 8, 8}},
			{&p.numberPlaces, "number_places", []int{8, 8, 4, 8, 8}},
			{&p.numberFirsts, "number_firsts", []int{8, 8, 8, 8, 8, 8}},
			{&p.numberNew, "number_new", []int{8, 8, 8, 8, 8, 8}},
			{&p.numberSources, "number_sources", []int{8, 8, 8}},
		},
		"transpose": {
			{&p.transposeCounts, "transpose_counts", []int{8, 8, 8, 8, 8, 4}},
			{&p.transposeSort, "transpose_sort", []int{8, 8, 8, 8, 8, 4}},
			{&p.transposeRows, "transpose_rows", []int{8, 8, 8, 8, 8}},
			{&p.transposeColumns, "transpose_columns", []int{8, 8, 8, 8, 8}},
		},
	} {
		if err := p.take(on, module, list); err != nil {
			return err
		}
	}
	return nil
}

func (p *programs) take(on *driver.Thread, module string, list []listed) error {
	for _, m := range kernels.Modules() {
		if m.Name != module {
			continue
		}
		loaded, err := on.Load(m.PTX)
		if err != nil {
			return fmt.Errorf("load the kernels of %s: %w", module, err)
		}
		p.modules = append(p.modules, loaded)
		for _, l := range list {
			if *l.to, err = on.Kernel(loaded, l.name, l.sizes...); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("there are no kernels of %s", module)
}
