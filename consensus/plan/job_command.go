package plan

type (
	// CreateJob puts a job into the queue. Its id is the plan's to give. Repeating it
	// with the same key changes nothing.
	CreateJob struct {
		Key      string `json:"key"`
		Dataset  string `json:"dataset"` // its id
		Recipe   string `json:"recipe"`
		Strategy string `json:"strategy"`
		Why      string `json:"why,omitempty"`
		Seed     uint64 `json:"seed"`
		Epochs   int    `json:"epochs"`
		Models   int    `json:"models,omitempty"` // of a sweep; 0: it is none
	}

	// AssignJob is the leader's word on who runs a job, as NextJobs computes it. If none
	// of them is one of its Keepers, it begins anew.
	AssignJob struct {
		ID string `json:"id"`
		// Nodes are those that run it. None, for a job that runs: it waits in the queue
		// again or, if it is to stop, is stopped.
		Nodes []string `json:"nodes"`
		// Owners is, for each shard of the dataset, who of Nodes serves and computes it;
		// none if the job is not Shared.
		Owners []int `json:"owners,omitempty"`
		// Generation, if not 0, is that of the running job which this replaces: it is
		// refused if the job has another by now. It is 0 for a job that is queued.
		Generation uint64 `json:"generation,omitempty"`
	}

	// CommitEpochs is what a node that runs a job reports of it: epochs in rising order,
	// each of all models of a sweep that trained in it. Those that are known already are
	// skipped.
	CommitEpochs struct {
		ID         string  `json:"id"`
		Node       string  `json:"node"`
		Generation uint64  `json:"generation"` // the job's
		Epochs     []Epoch `json:"epochs"`
	}

	// FinishJob is that node's word that the job has ended. Best, if not 0, is the
	// epoch of the best validation; of a sweep, that of BestModel, and Bests are those of
	// all models. Repeating it changes nothing.
	FinishJob struct {
		ID         string   `json:"id"`
		Node       string   `json:"node"`
		Generation uint64   `json:"generation"`
		State      JobState `json:"state"` // done, failed or stopped
		Error      string   `json:"error,omitempty"`
		Best       int      `json:"best,omitempty"`
		BestModel  int      `json:"best_model,omitempty"`
		Bests      []int    `json:"bests,omitempty"`
		Notes      []string `json:"notes,omitempty"` // sentences, MaxNotes at most
		// Diverged is as in a Job; none leaves what is known.
		Diverged []string `json:"diverged,omitempty"`
	}

	// StopJob is the wish that a job ends. One that is queued is stopped at once; one
	// that has ended stays as it is.
	StopJob struct {
		ID string `json:"id"`
	}

	// ResumeJob puts a job that has failed or was stopped into the queue again. One
	// that is queued or runs stays as it is. Recipe, if not "", takes the place of the
	// job's.
	ResumeJob struct {
		ID     string `json:"id"`
		Recipe string `json:"recipe,omitempty"`
	}

	// RemoveJob forgets a job that has ended, and with it what it has learnt.
	RemoveJob struct {
		ID string `json:"id"`
	}
)

func (CreateJob) kind() Kind    { return KindCreateJob }
func (AssignJob) kind() Kind    { return KindAssignJob }
func (CommitEpochs) kind() Kind { return KindCommitEpochs }
func (FinishJob) kind() Kind    { return KindFinishJob }
func (StopJob) kind() Kind      { return KindStopJob }
func (ResumeJob) kind() Kind    { return KindResumeJob }
func (RemoveJob) kind() Kind    { return KindRemoveJob }
