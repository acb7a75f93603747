package api

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Backend is the part of a node that the handler uses. Its methods are called from many
// goroutines. Errors that are not an *Error become internal ones.
type Backend interface {
	// Members, Status, Plan, Tokens and Ready answer from local state, leader or
	// not.
	Members(ctx context.Context) ([]Member, error)
	Status(ctx context.Context) (Status, error)
	Plan(ctx context.Context) (Plan, error)
	Tokens(ctx context.Context) ([]TokenInfo, error)
	Ready(ctx context.Context) []Check
	// Vitals asks all nodes, and waits a second for those that are slow.
	Vitals(ctx context.Context) ([]NodeVitals, error)

	// The others change something. They return when it is done, or an error if it is
	// refused.
	Join(ctx context.Context, r JoinRequest) error
	Leave(ctx context.Context) error
	ForceLeave(ctx context.Context, r ForceLeaveRequest) (ForcedOut, error)
	// CreateToken with a ttl of 0 makes a token that never expires, and with uses of 0 one
	// that admits any number of nodes.
	CreateToken(ctx context.Context, ttl time.Duration, uses uint64) (Token, error)
	RevokeToken(ctx context.Context, id string) error
	// Access, GrantAccess and RevokeAccess are about the tokens by which the API is used from
	// other machines. Scope returns what the holder of one may do, from local state.
	Access(ctx context.Context) ([]AccessInfo, error)
	GrantAccess(ctx context.Context, r AccessRequest) (AccessToken, error)
	RevokeAccess(ctx context.Context, id string) error
	Scope(token string) (string, error)
	// CA asks the other nodes for their part. RotateCA returns when the new CA is named.
	CA(ctx context.Context) (CA, error)
	RotateCA(ctx context.Context) (CA, error)

	// ImportDataset and GenerateDataset return when the dataset is ready. If ctx ends
	// first, they stop and leave nothing behind. They and VerifyDataset may call tell
	// from any goroutine, but not after they returned.
	ImportDataset(ctx context.Context, r ImportRequest, tell func(DatasetEvent)) (Dataset, error)
	GenerateDataset(ctx context.Context, r GenerateRequest, tell func(DatasetEvent)) (Dataset, error)
	// Datasets and Dataset answer from local state.
	Datasets(ctx context.Context) ([]DatasetSummary, error)
	Dataset(ctx context.Context, name string) (Dataset, error)
	// VerifyDataset makes every holder verify its copy of every shard.
	VerifyDataset(ctx context.Context, name string, tell func(DatasetEvent)) error
	// RemoveDataset with force also removes a dataset that kept models need.
	RemoveDataset(ctx context.Context, name string, force bool) error

	// StartJob checks the request and adds the job to the queue. The others return
	// NotFound if there is no such job. Jobs, Job and WatchJob answer from local state.
	StartJob(ctx context.Context, r TrainRequest) (id string, err error)
	Jobs(ctx context.Context) ([]JobSummary, error)
	Job(ctx context.Context, id string) (Job, error)
	// WatchJob returns when the job has ended. It calls tell from one goroutine, and not
	// after it returned.
	WatchJob(ctx context.Context, id string, tell func(JobEvent)) (Job, error)
	StopJob(ctx context.Context, id string) error
	ResumeJob(ctx context.Context, id string, r ResumeRequest) error
	RemoveJob(ctx context.Context, id string) error
	// Attach attaches a program to this node's part of a job, if no other is.
	Attach(ctx context.Context, id string) (Attachment, error)
	// Predict and ExportJob write a file.
	Predict(ctx context.Context, id string, r PredictRequest, to io.Writer) error
	ExportJob(ctx context.Context, id string, r ExportRequest, to io.Writer) error
	// Evaluate returns when the model was compared.
	Evaluate(ctx context.Context, id string, r EvaluateRequest) (Evaluation, error)
	// Forecast calls tell from one goroutine with each row, and not after it returned.
	Forecast(ctx context.Context, r ForecastRequest, tell func(ForecastRow)) (JobForecast, error)

	// RunScript returns when the script has ended well beside all nodes that live. It may call
	// tell from any goroutine, but not after it returned. If ctx ends first, it ends the script.
	RunScript(ctx context.Context, r RunRequest, tell func(RunEvent)) (RunDone, error)

	// Backup writes a file with keys of the mesh. It calls tell once, before it writes.
	Backup(ctx context.Context, r BackupRequest, to io.Writer, tell func(Backup) error) error

	// Events and Logs return channels that are closed when ctx ends or the node stops. A
	// slow reader loses values and does not block anyone.
	Events(ctx context.Context) <-chan Event
	Logs(ctx context.Context, level slog.Level) <-chan LogLine
}
