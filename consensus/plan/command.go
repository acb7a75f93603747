package plan

import (
	"encoding/json"
	"fmt"
	"time"
)

// Command is a change of the plan: one of the structs in this file, in token.go, authority.go,
// dataset_command.go, job_command.go or schedule.go. Fields may be added as long as old nodes
// reach the same state without them; else it is another command, with a number of its own
// (see version.go).
type Command interface {
	kind() Kind
	apply(s *State, index uint64) error // s is a private copy, see Apply
}

// Kind is a command's number on the wire and on disk. Numbers are never reused.
type Kind uint8

// The commands' numbers.
const (
	KindGenesis Kind = iota + 1
	KindAddMember
	KindUpdateMember
	KindSetLeaving
	KindRemoveMember
	KindCreateToken
	KindRevokeToken
	KindRotateKey
	KindRetireKey
	KindAdvance
	KindReserveDataset
	KindDefineDataset
	KindPlaceShards
	KindHoldShards
	KindLoseShards
	KindRemoveDataset
	KindCreateJob
	KindAssignJob
	KindCommitEpochs
	KindFinishJob
	KindStopJob
	KindResumeJob
	KindRemoveJob
	KindAdmit
	KindNameAuthority
	KindRetireAuthority
	KindSetComputing
	KindGrantAccess
	KindRevokeAccess
	KindScheduleJob
	KindTypes   // of no command: a DefineDataset with types, see since
	KindEdges   // of no command: a DefineDataset with features of edges, see since
	KindTriples // of no command: a DefineDataset of triples
)

type (
	// Genesis founds the mesh with its first member. It is the first command of every
	// log and is refused afterwards.
	Genesis struct {
		MeshID    string `json:"mesh_id"`
		First     Member `json:"first"`
		KeyDigest string `json:"key_digest"`
	}

	// AddMember admits a node, or readmits one that was removed. Repeating it with the
	// same id and key changes nothing.
	AddMember struct {
		Member Member `json:"member"`
	}

	// Admit is AddMember for a node that joins by a token: it takes one of the token's uses.
	// Repeating it takes none. Nodes that do not know it stop, so it is committed only as
	// State.BindsTokens says.
	Admit struct {
		Member Member    `json:"member"`
		Token  string    `json:"token"` // its id
		Now    time.Time `json:"now"`   // the leader's clock
		Seen   []string  `json:"seen"`  // ids of the nodes that the secret passed through
	}

	// UpdateMember records a member's properties after an upgrade or a change of
	// hardware.
	UpdateMember struct {
		ID      string `json:"id"`
		Device  string `json:"device,omitempty"`
		Version string `json:"version,omitempty"`
		Memory  uint64 `json:"memory,omitempty"`
		Speed   uint64 `json:"speed,omitempty"`
		Knows   Kind   `json:"knows,omitempty"`
		// Computes are as in Member.
		Computes Numbers `json:"computes,omitzero"`
	}

	// SetLeaving marks a member as leaving, so that its work and its vote move to
	// others first.
	SetLeaving struct {
		ID string `json:"id"`
	}

	// RemoveMember ends a membership. It also accepts ids that are no members, so that
	// a node may be revoked after the plan has forgotten it.
	RemoveMember struct {
		ID  string `json:"id"`
		Why Why    `json:"why"`
		// Tokens ends the tokens that State.TokensOf lists, too.
		Tokens bool `json:"tokens,omitempty"`
	}

	// CreateToken adds a join token, and drops those that have expired by Now, the
	// leader's clock.
	CreateToken struct {
		Token Token     `json:"token"`
		Now   time.Time `json:"now"`
	}

	// RevokeToken drops a join token.
	RevokeToken struct {
		ID string `json:"id"`
	}

	// RotateKey makes the next gossip key current. It is committed only when every live
	// node holds that key.
	RotateKey struct {
		Serial uint64 `json:"serial"`
		Digest string `json:"digest"`
		// AsOf is the State.Index at which the key was made. Nodes revoked after it may
		// have been given the key, so it stays stale. Zero means that nobody was given
		// it.
		AsOf uint64 `json:"as_of,omitempty"`
	}

	// RetireKey ends the use of the previous key. It is committed only when every live
	// node uses the key with this serial number.
	RetireKey struct {
		Serial uint64 `json:"serial"`
	}

	// Advance raises the generation above one that some node has seen, after a recovery
	// that may have lost the plans that issued it.
	Advance struct {
		Generation uint64 `json:"generation"`
	}
)

func (Genesis) kind() Kind      { return KindGenesis }
func (AddMember) kind() Kind    { return KindAddMember }
func (UpdateMember) kind() Kind { return KindUpdateMember }
func (SetLeaving) kind() Kind   { return KindSetLeaving }
func (RemoveMember) kind() Kind { return KindRemoveMember }
func (CreateToken) kind() Kind  { return KindCreateToken }
func (RevokeToken) kind() Kind  { return KindRevokeToken }
func (RotateKey) kind() Kind    { return KindRotateKey }
func (RetireKey) kind() Kind    { return KindRetireKey }
func (Advance) kind() Kind      { return KindAdvance }
func (Admit) kind() Kind        { return KindAdmit }

// An encoded command is three bytes, then JSON.
const (
	atVersion = iota
	atFlags
	atKind
	headerLen
)

const (
	encodingVersion = 1
	// flagIgnorable marks a command that nodes may skip if they do not know it. No
	// command of this version has it; it is for rolling upgrades to later ones.
	flagIgnorable = 1 << 0
	// maxCommand has room for a dataset of MaxShards shards, for the longest recipe and
	// for MaxCommit epochs, and is a size that Raft handles well.
	maxCommand = 768 << 10
)

// Encode returns a command as the log stores it.
func Encode(c Command) ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a command: %w", err)
	}
	if headerLen+len(body) > maxCommand {
		return nil, fmt.Errorf("%w: %d bytes", ErrOversized, len(body))
	}
	return append([]byte{encodingVersion, 0, byte(c.kind())}, body...), nil
}

// Decode parses a command. For an unknown command it returns ErrIgnored or
// ErrUnknownCommand, as the command's writer chose; for a malformed one it returns
// ErrUnreadable. Unknown JSON fields are skipped.
func Decode(data []byte) (Command, error) {
	if len(data) < headerLen {
		return nil, fmt.Errorf("%w: %d bytes", ErrUnreadable, len(data))
	}
	if len(data) > maxCommand {
		return nil, fmt.Errorf("%w: %d bytes", ErrOversized, len(data))
	}
	flags, body := data[atFlags], data[headerLen:]
	if data[atVersion] != encodingVersion || flags&^flagIgnorable != 0 {
		return nil, fmt.Errorf("%w (encoding %d, flags %#x)", ErrUnknownCommand, data[atVersion], flags)
	}
	switch k := Kind(data[atKind]); k {
	case KindGenesis:
		return parse[Genesis](body)
	case KindAddMember:
		return parse[AddMember](body)
	case KindUpdateMember:
		return parse[UpdateMember](body)
	case KindSetLeaving:
		return parse[SetLeaving](body)
	case KindRemoveMember:
		return parse[RemoveMember](body)
	case KindCreateToken:
		return parse[CreateToken](body)
	case KindRevokeToken:
		return parse[RevokeToken](body)
	case KindRotateKey:
		return parse[RotateKey](body)
	case KindRetireKey:
		return parse[RetireKey](body)
	case KindAdvance:
		return parse[Advance](body)
	case KindReserveDataset:
		return parse[ReserveDataset](body)
	case KindDefineDataset:
		return parse[DefineDataset](body)
	case KindPlaceShards:
		return parse[PlaceShards](body)
	case KindHoldShards:
		return parse[HoldShards](body)
	case KindLoseShards:
		return parse[LoseShards](body)
	case KindRemoveDataset:
		return parse[RemoveDataset](body)
	case KindCreateJob:
		return parse[CreateJob](body)
	case KindAssignJob:
		return parse[AssignJob](body)
	case KindCommitEpochs:
		return parse[CommitEpochs](body)
	case KindFinishJob:
		return parse[FinishJob](body)
	case KindStopJob:
		return parse[StopJob](body)
	case KindResumeJob:
		return parse[ResumeJob](body)
	case KindRemoveJob:
		return parse[RemoveJob](body)
	case KindAdmit:
		return parse[Admit](body)
	case KindNameAuthority:
		return parse[NameAuthority](body)
	case KindRetireAuthority:
		return parse[RetireAuthority](body)
	case KindSetComputing:
		return parse[SetComputing](body)
	case KindGrantAccess:
		return parse[GrantAccess](body)
	case KindRevokeAccess:
		return parse[RevokeAccess](body)
	case KindScheduleJob:
		return parse[ScheduleJob](body)
	default:
		if later, in := trial[k]; in {
			return later(body)
		}
		if flags&flagIgnorable != 0 {
			return nil, ErrIgnored
		}
		return nil, fmt.Errorf("%w (command %d)", ErrUnknownCommand, k)
	}
}

func parse[C Command](body []byte) (Command, error) {
	var c C
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return c, nil
}
