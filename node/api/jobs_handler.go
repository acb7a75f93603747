package api

import (
	"context"
	"io"
	"net/http"
)

func (s server) jobRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/jobs", s.jobs)
	mux.HandleFunc("POST /v1/jobs", s.startJob)
	mux.HandleFunc("GET /v1/jobs/{id}", s.job)
	mux.HandleFunc("DELETE /v1/jobs/{id}", s.removeJob)
	mux.HandleFunc("GET /v1/jobs/{id}/watch", s.watchJob)
	mux.HandleFunc("GET /v1/jobs/{id}/attach", func(w http.ResponseWriter, r *http.Request) { attach(s.Backend, w, r) })
	mux.HandleFunc("POST /v1/jobs/{id}/stop", s.stopJob)
	mux.HandleFunc("POST /v1/jobs/{id}/resume", s.resumeJob)
	mux.HandleFunc("POST /v1/jobs/{id}/predict", s.predict)
	mux.HandleFunc("POST /v1/jobs/{id}/export", s.exportJob)
	mux.HandleFunc("POST /v1/forecasts", s.forecast)
}

func (s server) jobs(w http.ResponseWriter, r *http.Request) {
	list, err := s.Jobs(r.Context())
	answer(w, wholeSummaries(list), err)
}

// wholeSummaries returns the list with no field that prints as null.
func wholeSummaries(list []JobSummary) []JobSummary {
	whole := make([]JobSummary, len(list))
	for i, j := range list {
		whole[i] = j.notNull()
	}
	return whole
}

func (s server) job(w http.ResponseWriter, r *http.Request) {
	j, err := s.Job(r.Context(), r.PathValue("id"))
	answer(w, j.notNull(), err)
}

func (s server) startJob(w http.ResponseWriter, r *http.Request) {
	var q TrainRequest
	err := decode(w, r, &q)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	id, err := s.StartJob(r.Context(), q)
	answer(w, JobID{id}, err)
}

func (s server) watchJob(w http.ResponseWriter, r *http.Request) {
	answerOperation(w, r, func(ctx context.Context, tell func(JobEvent)) (JobEvent, error) {
		j, err := s.WatchJob(ctx, r.PathValue("id"), func(e JobEvent) {
			if e.State != nil {
				whole := e.State.notNull()
				e.State = &whole
			}
			tell(e)
		})
		j = j.notNull()
		return JobEvent{End: &j}, err
	})
}

func (s server) stopJob(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	answer(w, Done{ID: id, OK: true}, s.StopJob(r.Context(), id))
}

func (s server) resumeJob(w http.ResponseWriter, r *http.Request) {
	var q ResumeRequest
	var err error
	if r.ContentLength != 0 { // the body is optional
		err = decode(w, r, &q)
	}
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	id := r.PathValue("id")
	answer(w, Done{ID: id, OK: true}, s.ResumeJob(r.Context(), id, q))
}

func (s server) removeJob(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	answer(w, Done{ID: id, OK: true}, s.RemoveJob(r.Context(), id))
}

func (s server) predict(w http.ResponseWriter, r *http.Request) {
	var q PredictRequest
	err := decode(w, r, &q)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	deliver(w, func(to io.Writer) error { return s.Predict(r.Context(), r.PathValue("id"), q, to) })
}

func (s server) exportJob(w http.ResponseWriter, r *http.Request) {
	var q ExportRequest
	if r.ContentLength != 0 { // the body is optional
		if err := decode(w, r, &q); err != nil {
			fail(w, err)
			return
		}
	}
	deliver(w, func(to io.Writer) error { return s.ExportJob(r.Context(), r.PathValue("id"), q, to) })
}

func (s server) forecast(w http.ResponseWriter, r *http.Request) {
	var q ForecastRequest
	err := decode(w, r, &q)
	if err == nil {
		err = q.Check()
	}
	if err != nil {
		fail(w, err)
		return
	}
	answerOperation(w, r, func(ctx context.Context, tell func(ForecastEvent)) (ForecastEvent, error) {
		f, err := s.Forecast(ctx, q, func(row ForecastRow) { tell(ForecastEvent{Row: &row}) })
		f.Rows, f.Assumptions = notNull(f.Rows), notNull(f.Assumptions)
		return ForecastEvent{End: &f}, err
	})
}

// notNull returns j with empty lists that print as [].
func (j Job) notNull() Job {
	j.Nodes, j.History, j.Models, j.Problems = notNull(j.Nodes), notNull(j.History), notNull(j.Models), notNull(j.Problems)
	j.Notes, j.Devices = notNull(j.Notes), notNull(j.Devices)
	return j
}

func (j JobSummary) notNull() JobSummary {
	j.Nodes = notNull(j.Nodes)
	return j
}
