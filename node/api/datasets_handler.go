package api

import (
	"context"
	"net/http"
	"strconv"
)

func (s server) datasetRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/datasets", s.datasets)
	mux.HandleFunc("GET /v1/datasets/{name}", s.dataset)
	mux.HandleFunc("POST /v1/datasets/import", s.importDataset)
	mux.HandleFunc("POST /v1/datasets/generate", s.generateDataset)
	mux.HandleFunc("POST /v1/datasets/{name}/verify", s.verifyDataset)
	mux.HandleFunc("DELETE /v1/datasets/{name}", s.removeDataset)
}

func (s server) datasets(w http.ResponseWriter, r *http.Request) {
	list, err := s.Datasets(r.Context())
	answer(w, notNull(list), err)
}

func (s server) dataset(w http.ResponseWriter, r *http.Request) {
	d, err := s.Dataset(r.Context(), r.PathValue("name"))
	answer(w, d.notNull(), err)
}

func (s server) importDataset(w http.ResponseWriter, r *http.Request) {
	var q ImportRequest
	err := decode(w, r, &q)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	answerOperation(w, r, func(ctx context.Context, tell func(DatasetEvent)) (DatasetEvent, error) {
		d, err := s.ImportDataset(ctx, q, tell)
		return made(d), err
	})
}

func (s server) generateDataset(w http.ResponseWriter, r *http.Request) {
	var q GenerateRequest
	err := decode(w, r, &q)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	answerOperation(w, r, func(ctx context.Context, tell func(DatasetEvent)) (DatasetEvent, error) {
		d, err := s.GenerateDataset(ctx, q, tell)
		return made(d), err
	})
}

func (s server) verifyDataset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	answerOperation(w, r, func(ctx context.Context, tell func(DatasetEvent)) (DatasetEvent, error) {
		return DatasetEvent{Done: &Done{Name: name, OK: true}}, s.VerifyDataset(ctx, name, tell)
	})
}

func (s server) removeDataset(w http.ResponseWriter, r *http.Request) {
	name, force := r.PathValue("name"), false
	if text := r.URL.Query().Get("force"); text != "" {
		var err error
		if force, err = strconv.ParseBool(text); err != nil {
			fail(w, Invalid("force is %q, and neither true nor false", text))
			return
		}
	}
	answer(w, Done{Name: name, OK: true}, s.RemoveDataset(r.Context(), name, force))
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
