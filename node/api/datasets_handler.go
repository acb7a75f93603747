package api

import (
	"context"
	"net/http"
	"strconv"
)

func (s server) datasetRoutes() []route {
	return []route{
		{"GET /v1/datasets", readers, "Lists the datasets.", nil, asks(func(r *http.Request) ([]DatasetSummary, error) {
			list, err := s.Datasets(r.Context())
			return notNull(list), err
		})},
		{"GET /v1/datasets/{name}", readers, "One dataset, and which nodes hold its shards.", nil, asks(func(r *http.Request) (Dataset, error) {
			d, err := s.Dataset(r.Context(), r.PathValue("name"))
			return d.notNull(), err
		})},
		{
			"POST /v1/datasets/import", operators, "Imports a graph from files or URLs that nodes read. If the client goes away, nothing is left of it.", nil,
			runs(func(ctx context.Context, _ *http.Request, q ImportRequest, tell func(DatasetEvent)) (DatasetEvent, error) {
				d, err := s.ImportDataset(ctx, q, tell)
				return made(d), err
			}),
		},
		{
			"POST /v1/datasets/generate", operators, "Generates a graph. If the client goes away, nothing is left of it.", nil,
			runs(func(ctx context.Context, _ *http.Request, q GenerateRequest, tell func(DatasetEvent)) (DatasetEvent, error) {
				d, err := s.GenerateDataset(ctx, q, tell)
				return made(d), err
			}),
		},
		{
			"POST /v1/datasets/{name}/verify", operators, "Makes every holder verify its copy of every shard.", nil,
			runs(func(ctx context.Context, r *http.Request, _ none, tell func(DatasetEvent)) (DatasetEvent, error) {
				name := r.PathValue("name")
				return DatasetEvent{Done: &Done{Name: name, OK: true}}, s.VerifyDataset(ctx, name, tell)
			}),
		},
		{
			"DELETE /v1/datasets/{name}", operators, "Removes a dataset.",
			[]parameter{{"force", "true removes it also if kept models need it"}},
			asks(s.removeDataset),
		},
	}
}

func (s server) removeDataset(r *http.Request) (Done, error) {
	name, force := r.PathValue("name"), false
	if text := r.URL.Query().Get("force"); text != "" {
		var err error
		if force, err = strconv.ParseBool(text); err != nil {
			return Done{}, Invalid("force is %q, and neither true nor false", text)
		}
	}
	return Done{Name: name, OK: true}, s.RemoveDataset(r.Context(), name, force)
}

func made(d Dataset) DatasetEvent {
	d = d.notNull()
	return DatasetEvent{Dataset: &d}
}

// notNull returns d with empty lists that print as []. It does not change the lists of d
// itself.
func (d Dataset) notNull() Dataset {
	shards := make([]DatasetShard, len(d.Shards))
	for i, s := range d.Shards {
		s.Replicas = notNull(s.Replicas)
		shards[i] = s
	}
	d.Shards, d.SplitSizes, d.Problems = shards, notNull(d.SplitSizes), notNull(d.Problems)
	return d
}
