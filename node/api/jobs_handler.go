package api

import (
	"context"
	"io"
	"net/http"
)

func (s server) jobRoutes() []route {
	return []route{
		{"GET /v1/jobs", readers, "Lists the jobs.", nil, asks(func(r *http.Request) ([]JobSummary, error) {
			list, err := s.Jobs(r.Context())
			return wholeSummaries(list), err
		})},
		{"POST /v1/jobs", operators, "Adds a job to the queue, after it was checked.", nil, takes(func(r *http.Request, q TrainRequest) (JobID, error) {
			id, err := s.StartJob(r.Context(), q)
			return JobID{id}, err
		})},
		{"GET /v1/jobs/{id}", readers, "One job, with all its epochs.", nil, asks(func(r *http.Request) (Job, error) {
			j, err := s.Job(r.Context(), r.PathValue("id"))
			return j.notNull(), err
		})},
		{"DELETE /v1/jobs/{id}", operators, "Removes a job that has ended, with what it has learned.", nil, asks(func(r *http.Request) (Done, error) {
			id := r.PathValue("id")
			return Done{ID: id, OK: true}, s.RemoveJob(r.Context(), id)
		})},
		{"GET /v1/jobs/{id}/watch", readers, "What becomes of a job, as it happens, until it has ended.", nil, runs(s.watchJob)},
		{
			"GET /v1/jobs/{id}/attach", programs, "Attaches a program that computes the steps of a job: the connection is upgraded to " + ProgramProtocol + ".", nil,
			serves("", func(w http.ResponseWriter, r *http.Request) { attach(s.Backend, w, r) }),
		},
		{"POST /v1/jobs/{id}/stop", operators, "Stops a job. It can be resumed.", nil, asks(func(r *http.Request) (Done, error) {
			id := r.PathValue("id")
			return Done{ID: id, OK: true}, s.StopJob(r.Context(), id)
		})},
		{"POST /v1/jobs/{id}/resume", operators, "Resumes a job from its checkpoint.", nil, takes(func(r *http.Request, q ResumeRequest) (Done, error) {
			id := r.PathValue("id")
			return Done{ID: id, OK: true}, s.ResumeJob(r.Context(), id, q)
		}).orNothing()},
		{"POST /v1/jobs/{id}/predict", operators, "A file with a model's predictions for every vertex of its dataset or of another, or for pairs.", nil, delivers(func(_ http.ResponseWriter, r *http.Request, q PredictRequest, to io.Writer) error {
			return s.Predict(r.Context(), r.PathValue("id"), q, to)
		})},
		{"POST /v1/jobs/{id}/evaluate", operators, "How well a model does on its dataset, or on another.", nil, runs(s.evaluate).orNothing()},
		{"POST /v1/jobs/{id}/export", operators, "A file with a model's weights.", nil, delivers(func(_ http.ResponseWriter, r *http.Request, q ExportRequest, to io.Writer) error {
			return s.ExportJob(r.Context(), r.PathValue("id"), q, to)
		}).orNothing()},
		{"POST /v1/forecasts", operators, "What a job would take on meshes of other sizes.", nil, runs(s.forecast)},
	}
}

func (s server) watchJob(ctx context.Context, r *http.Request, _ none, tell func(JobEvent)) (JobEvent, error) {
	j, err := s.WatchJob(ctx, r.PathValue("id"), func(e JobEvent) {
		if e.State != nil {
			whole := e.State.notNull()
			e.State = &whole
		}
		tell(e)
	})
	j = j.notNull()
	return JobEvent{End: &j}, err
}

func (s server) evaluate(ctx context.Context, r *http.Request, q EvaluateRequest, _ func(EvaluationEvent)) (EvaluationEvent, error) {
	e, err := s.Evaluate(ctx, r.PathValue("id"), q)
	return EvaluationEvent{End: &e}, err
}

func (s server) forecast(ctx context.Context, _ *http.Request, q ForecastRequest, tell func(ForecastEvent)) (ForecastEvent, error) {
	f, err := s.Forecast(ctx, q, func(row ForecastRow) { tell(ForecastEvent{Row: &row}) })
	f.Rows, f.Assumptions = notNull(f.Rows), notNull(f.Assumptions)
	return ForecastEvent{End: &f}, err
}

// wholeSummaries returns the list with no field that prints as null.
func wholeSummaries(list []JobSummary) []JobSummary {
	whole := make([]JobSummary, len(list))
	for i, j := range list {
		whole[i] = j.notNull()
	}
	return whole
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

func (s server) runRoutes() []route {
	return []route{
		{
			"POST /v1/runs", owners, "Runs a script beside nodes of the mesh, and answers with its output until it has ended. If the client goes away, the script is ended.", nil,
			runs(func(ctx context.Context, _ *http.Request, q RunRequest, tell func(RunEvent)) (RunEvent, error) {
				d, err := s.RunScript(ctx, q, tell)
				d.Nodes = notNull(d.Nodes)
				return RunEvent{Done: &d}, err
			}),
		},
	}
}
