package api

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Backend is what the handler needs of a node. Its methods are called from many
// goroutines; errors that are no *Error become internal ones.
type Backend interface {
	// Members, Status, Plan, Tokens and Ready answer from local state, leader or
	// not.
	Members(ctx context.Context) ([]Member, error)
	Status(ctx context.Context) (Status, error)
	Plan(ctx context.Context) (Plan, error)
	Tokens(ctx context.Context) ([]TokenInfo, error)
	Ready(ctx context.Context) []Check

	// The others change something and return when it is done or refused.
	Join(ctx context.Context, r JoinRequest) error
	Leave(ctx context.Context) error
	ForceLeave(ctx context.Context, r ForceLeaveRequest) error
	// CreateToken with a ttl of 0 makes a token that never expires.
	CreateToken(ctx context.Context, ttl time.Duration) (Token, error)
	RevokeToken(ctx context.Context, id string) error

	// ImportDataset and GenerateDataset return when the dataset is ready, and end
	// with ctx, which leaves nothing behind. They and VerifyDataset may call tell
	// from any goroutine, but not after they returned.
	ImportDataset(ctx context.Context, r ImportRequest, tell func(DatasetEvent)) (Dataset, error)
	GenerateDataset(ctx context.Context, r GenerateRequest, tell func(DatasetEvent)) (Dataset, error)
	// Datasets and Dataset answer from local state.
	Datasets(ctx context.Context) ([]DatasetSummary, error)
	Dataset(ctx context.Context, name string) (Dataset, error)
	// VerifyDataset has every copy of every shard read through by who holds it.
	VerifyDataset(ctx context.Context, name string, tell func(DatasetEvent)) error
	// RemoveDataset with force also removes what models that are kept need.
	RemoveDataset(ctx context.Context, name string, force bool) error

	// StartJob checks what is asked for and puts it into the queue; the others answer
	// with NotFound where there is no such job. Jobs, Job and WatchJob answer from
	// what this node knows.
	StartJob(ctx context.Context, r TrainRequest) (id string, err error)
	Jobs(ctx context.Context) ([]JobSummary, error)
	Job(ctx context.Context, id string) (Job, error)
	// WatchJob returns when the job has ended. It calls tell from one goroutine, and
	// not after it returned.
	WatchJob(ctx context.Context, id string, tell func(JobEvent)) (Job, error)
	StopJob(ctx context.Context, id string) error
	ResumeJob(ctx context.Context, id string, r ResumeRequest) error
	RemoveJob(ctx context.Context, id string) error
	// Predict and ExportJob write a file.
	Predict(ctx context.Context, id string, r PredictRequest, to io.Writer) error
	ExportJob(ctx context.Context, id string, r ExportRequest, to io.Writer) error

	// Events and Logs return channels that are closed when ctx ends or the node
	// stops. A slow reader loses values and holds nobody up.
	Events(ctx context.Context) <-chan Event
	Logs(ctx context.Context, level slog.Level) <-chan LogLine
}
