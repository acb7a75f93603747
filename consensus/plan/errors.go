package plan

import "errors"

// Reasons to refuse a command. All nodes refuse it alike, so a refusal changes nothing
// anywhere. Settings and commands are named by keys in braces, which node words for users.
var (
	ErrInvalid          = errors.New("the change of the plan makes no sense")
	ErrFounded          = errors.New("the mesh is founded already")
	ErrNotFounded       = errors.New("the mesh is not founded yet")
	ErrNameTaken        = errors.New("another node has this name: choose another with {agent.name}")
	ErrIDTaken          = errors.New("another node has this id: move the data directory away and join anew")
	ErrGone             = errors.New("this node's id has left the mesh or was revoked: move the data directory away and join anew")
	ErrNoMember         = errors.New("no such member")
	ErrLastMember       = errors.New("this is the last member, and a mesh can't be without one")
	ErrKeySerial        = errors.New("the gossip key's serial number is not the one that is due")
	ErrKeyTurning       = errors.New("the gossip key is being replaced already")
	ErrAuthoritySerial  = errors.New("the serial number of the mesh's CA is not the one that is due")
	ErrAuthorityTurning = errors.New("the mesh's CA is being replaced already")
	ErrTokenTaken       = errors.New("a token with this id exists already")
	ErrTokensFull       = errors.New("there are too many join tokens: revoke some with {token.revoke}")
	ErrDatasetTaken     = errors.New("a dataset with this name or id exists already: choose another name, or remove that one with {dataset.remove}")
	ErrDatasetsFull     = errors.New("there are too many datasets: remove some with {dataset.remove}")
	ErrNoDataset        = errors.New("no such dataset")
	ErrNotImporting     = errors.New("this node is not importing this dataset")
	ErrUndefined        = errors.New("the dataset is still being imported")
	ErrDatasetInUse     = errors.New("a job waits for the dataset or works on it")
	ErrNoJob            = errors.New("no such job")
	ErrJobTaken         = errors.New("a job with this key exists already")
	ErrOtherContent     = errors.New("the dataset of this name has another content than the one that the job began with")
	ErrJobsFull         = errors.New("there are as many jobs as the mesh keeps: remove one with {train.remove}")
	ErrEpochsFull       = errors.New("the jobs that run or wait may have too many epochs together: stop some with {train.stop}, let them end, or ask for fewer {epochs}")
	ErrJobState         = errors.New("the job is in no state for this")
	ErrReassigned       = errors.New("the job no longer runs in the generation that this was to follow")
	ErrNodeBusy         = errors.New("the node runs another job")
	ErrStaleReport      = errors.New("the job is no longer this node's to report of")
	ErrUnreadable       = errors.New("the command can't be read")
	ErrOversized        = errors.New("the command is too large")
	ErrBadSnapshot      = errors.New("the snapshot of the plan is damaged")
)

// Errors of CheckToken.
var (
	ErrTokenUnknown = errors.New("the token is not known here: it was revoked or was never made in this mesh; {token.create} on a member makes a new one")
	ErrTokenExpired = errors.New("the token has expired: {token.create} on a member makes a new one")
	ErrTokenUsedUp  = errors.New("the token has admitted as many nodes as it may: {token.create} on a member makes a new one")
)

// ErrNotAllKnow means that a command may not be proposed yet, since a member is of a version that
// does not know it.
var ErrNotAllKnow = errors.New("a node of the mesh runs a version of hopmesh that does not know how: upgrade it first")

// ErrUnknownCommand means that the mesh has agreed on something this program does not
// know. A node that reads it must stop; otherwise its state would diverge from the
// others'.
var ErrUnknownCommand = errors.New("the mesh speaks of something that this version of hopmesh does not know: upgrade hopmesh on this node")

// ErrIgnored is returned by Decode for an unknown command that is marked as safe to
// skip.
var ErrIgnored = errors.New("a command of a later version that may be ignored")
