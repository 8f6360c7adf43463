package bus

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// hashHeader holds a frame's hash in hex, so that a writer can tell its own frame without decoding any.
const hashHeader = "Frame-Hash"

// Pos is a place in the log. Epoch is the identity of the stream: a sequence means nothing in another epoch.
type Pos struct {
	Stream string
	Seq    uint64 // from 1; 0 is before the first entry
	Epoch  string
}

// Msg is one entry of the log, read back. Its slices belong to the reader.
type Msg struct {
	Key  record.Key
	Kind Kind // 0: the subject is none of ours, and Key is empty
	Pos  Pos
	Hash engine.Digest // as the writer gave it; zero for kinds other than frames
	Prev uint64        // frames: the frame before, as the writer knew it
	ID   string        // as the writer gave it
	Data []byte
	At   time.Time // by the server's clock; no decision reads it
	// Deliveries counts how often a minter was handed this entry, this time included. 0 elsewhere.
	Deliveries int
}

func message(subject string, header nats.Header, data []byte, pos Pos, at time.Time) Msg {
	m := Msg{Pos: pos, Data: data, At: at, ID: header.Get(jetstream.MsgIDHeader)}
	m.Key, m.Kind = parseSubject(subject)
	m.Hash = headerHash(header)
	m.Prev, _ = strconv.ParseUint(header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	return m
}

// headerHash is zero where the header is missing or malformed: it then equals no frame's hash.
func headerHash(header nats.Header) engine.Digest {
	d, err := engine.ParseDigest(header.Get(hashHeader))
	if err != nil {
		return engine.Digest{}
	}
	return d
}
