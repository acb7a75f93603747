package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"
)

// The numbers of the fields that are written, of the messages Event, Summary,
// Summary.Value and SessionLog.
const (
	eventTime    = 1
	eventStep    = 2
	eventVersion = 3
	eventSummary = 5
	eventSession = 7

	summaryValue = 1

	valueTag    = 1
	valueNumber = 2

	sessionStatus  = 1
	sessionStarted = 1
)

// How protocol buffers write a field's content.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

// version is what the first event of each file says. From this one on readers drop what a
// session start follows up on.
const version = "brain.Event:2"

// A value is one number of an epoch, and the name of the curve that it belongs to.
type value struct {
	tag    string
	number float64
}

// appendVersion appends the first record of a file.
func appendVersion(to []byte, now time.Time) []byte {
	return appendRecord(to, appendString(eventAt(now, 0), eventVersion, version))
}

// appendStart appends a record on which readers drop what they have of step and all later
// steps.
func appendStart(to []byte, now time.Time, step int) []byte {
	session := appendNumber(nil, sessionStatus, sessionStarted)
	return appendRecord(to, appendString(eventAt(now, step), eventSession, string(session)))
}

// appendValues appends the values of a step. They are one record, so a file has all of them
// or none.
func appendValues(to []byte, now time.Time, step int, values []value) []byte {
	var summary, one []byte
	for _, v := range values {
		one = appendString(one[:0], valueTag, v.tag)
		one = binary.AppendUvarint(one, valueNumber<<3|fixed32)
		one = binary.LittleEndian.AppendUint32(one, math.Float32bits(float32(v.number)))
		summary = appendString(summary, summaryValue, string(one))
	}
	return appendRecord(to, appendString(eventAt(now, step), eventSummary, string(summary)))
}

// eventAt returns the beginning of an event.
func eventAt(now time.Time, step int) []byte {
	event := binary.AppendUvarint(nil, eventTime<<3|fixed64)
	event = binary.LittleEndian.AppendUint64(event, math.Float64bits(float64(now.UnixMicro())/1e6))
	if step == 0 {
		return event
	}
	return appendNumber(event, eventStep, uint64(step))
}

func appendNumber(to []byte, field, x uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(to, field<<3|varint), x)
}

func appendString(to []byte, field uint64, s string) []byte {
	to = binary.AppendUvarint(to, field<<3|bytes)
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// A record is its length, the length's sum, its content and the content's sum.
const (
	headerLen  = 8 + 4
	trailerLen = 4
)

func appendRecord(to, content []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(len(content)))
	to = binary.LittleEndian.AppendUint32(to, sum(to[len(to)-8:]))
	to = append(to, content...)
	return binary.LittleEndian.AppendUint32(to, sum(content))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the masked CRC of a record's part. It is masked since CRCs of data that hold
// CRCs are weak.
func sum(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}
