package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names of the streams that are not numbered.
const (
	controlStream = "CTL"
	deadStream    = "DLQ"
	redoStream    = "REDO"
	foldStream    = "FOLD_Q"
	mintConsumer  = "mint"
	foldConsumer  = "fold"
)

// streamSet is the streams as this process found or made them.
type streamSet struct {
	k      int
	names  []string // of those that a node follows: REC_k, FORM_k, CTL
	mu     sync.Mutex
	epochs map[string]string
}

func recStream(k int) string  { return "REC_" + strconv.Itoa(k) }
func formStream(k int) string { return "FORM_" + strconv.Itoa(k) }

// streamOf is the stream that holds the task's entries of a kind.
func (s *streamSet) streamOf(task string, kind Kind) string {
	k := Partition(task) % s.k
	switch kind {
	case KindForm:
		return formStream(k)
	case KindControl:
		return controlStream
	default:
		return recStream(k)
	}
}

func (s *streamSet) epoch(stream string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs[stream]
}

func (s *streamSet) setEpoch(stream, epoch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochs[stream] = epoch
}

// epochOf names a stream by when it was made: another stream of the same name is another epoch.
func epochOf(info *jetstream.StreamInfo) string {
	return info.Config.Name + "@" + strconv.FormatInt(info.Created.UnixNano(), 36)
}

// Streams returns the streams that a node follows into its store, the record first.
func (b *Bus) Streams() []string { return slices.Clone(b.streams.names) }

// StreamOf returns the stream that holds the task's entries of a kind.
func (b *Bus) StreamOf(task string, kind Kind) string { return b.streams.streamOf(task, kind) }

// Epoch returns the identity of a stream, as this process last saw it; "" for a stream that is not ours.
func (b *Bus) Epoch(stream string) string { return b.streams.epoch(stream) }

// Head returns the last place of a stream, asked of its leader. Seq stays where it was when entries are purged.
func (b *Bus) Head(ctx context.Context, stream string) (Pos, error) {
	s, err := b.bulkJS.Stream(ctx, stream)
	if err != nil {
		return Pos{}, fmt.Errorf("read head of stream %s: %w", stream, err)
	}
	info := s.CachedInfo()
	epoch := epochOf(info)
	b.streams.setEpoch(stream, epoch)
	return Pos{Stream: stream, Seq: info.State.LastSeq, Epoch: epoch}, nil
}

// plan is the streams that should exist, with the settings of bus.md §1.7: limits, discard new, no deletion of single
// entries, no server-side compression, and reads by the leader alone.
func plan(cfg Config, k, replicas int) []jetstream.StreamConfig {
	base := func(name string, bytes int64, subjects ...string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: subjects,
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: replicas,
			Discard: jetstream.DiscardNew, MaxBytes: bytes,
			DenyDelete: true, Duplicates: 2 * time.Minute, Compression: jetstream.NoCompression,
		}
	}
	share := func(eighths int64, of int) int64 {
		if !cfg.embedded() && cfg.MaxStore == 1<<40 {
			return -1 // a cluster's administrator bounds the account
		}
		return cfg.MaxStore / 8 * eighths / int64(of)
	}
	var streams []jetstream.StreamConfig
	for i := range k {
		streams = append(streams, base(recStream(i), share(5, k), partitionSubjects("rec", i, k)...))
	}
	for i := range k {
		streams = append(streams, base(formStream(i), share(2, k), partitionSubjects("form", i, k)...))
	}
	streams = append(streams, base(controlStream, share(1, 4), "ctl.>"))
	// Dead letters are looked at, replayed and dropped one by one; beyond their bound the oldest give way, since a
	// full heap of failures must not hold up the lane.
	dead := base(deadStream, share(1, 4), "dlq.>", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*."+mintConsumer,
		"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+foldStream+"."+foldConsumer)
	dead.Discard, dead.DenyDelete = jetstream.DiscardOld, false
	// Orders to mint an entry once more name it by stream and sequence.
	redo := base(redoStream, share(1, 4), "redo.>")
	redo.Discard, redo.DenyDelete, redo.MaxAge = jetstream.DiscardOld, false, 30*24*time.Hour
	// A job goes when it was answered for. One for each task and kind: the newest. A full queue refuses, and never drops
	// another task's job; but one that nobody took for a week is of no use, and its task asks again when it goes on.
	folds := base(foldStream, share(1, 4), "foldq.>")
	folds.Retention, folds.DenyDelete, folds.MaxMsgsPerSubject, folds.MaxAge = jetstream.WorkQueuePolicy, false, 1, 7*24*time.Hour
	return append(streams, dead, redo, folds)
}

func partitionSubjects(prefix string, i, k int) []string {
	var subjects []string
	for p := i; p < Partitions; p += k {
		subjects = append(subjects, prefix+"."+strconv.Itoa(p)+".>")
	}
	return subjects
}

// ensureStreams makes what is missing and refuses what is there but unsafe.
func ensureStreams(ctx context.Context, cfg Config, js jetstream.JetStream, clustered bool) (*streamSet, error) {
	k, err := existingStreams(ctx, js)
	if err != nil {
		return nil, err
	}
	switch {
	case k == 0:
		k = cfg.Streams
		set(&k, defaultStreams)
	case cfg.Streams != 0 && cfg.Streams != k:
		return nil, fmt.Errorf("open the log at %s: it has %d record streams and %d are asked for; leave the number out, or give %d", where(cfg), k, cfg.Streams, k)
	}
	replicas := cfg.Replicas
	if replicas == 0 {
		replicas = 1
		if clustered {
			replicas = 3
		}
	}
	set := &streamSet{k: k, epochs: map[string]string{}}
	for _, want := range plan(cfg, k, replicas) {
		info, err := ensureStream(ctx, cfg, js, want)
		if err != nil {
			return nil, fmt.Errorf("open stream %s: %w", want.Name, err)
		}
		set.epochs[want.Name] = epochOf(info)
		if want.Name != deadStream && want.Name != redoStream && want.Name != foldStream {
			set.names = append(set.names, want.Name)
		}
		if consumer := workers(cfg, want.Name); consumer.Durable != "" {
			if err := ensureWorkers(ctx, cfg, js, want.Name, consumer); err != nil {
				return nil, fmt.Errorf("open consumer %s of stream %s: %w", consumer.Durable, want.Name, err)
			}
		}
	}
	return set, nil
}

// existingStreams counts the record streams; 0 in a fresh log.
func existingStreams(ctx context.Context, js jetstream.JetStream) (int, error) {
	names := js.StreamNames(ctx)
	k := 0
	for name := range names.Name() {
		if strings.HasPrefix(name, "REC_") {
			k++
		}
	}
	if err := names.Err(); err != nil {
		return 0, fmt.Errorf("list streams: %w", err)
	}
	return k, nil
}

func ensureStream(ctx context.Context, cfg Config, js jetstream.JetStream, want jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, err
	}
	if s, err = giveSubjects(ctx, js, s, want); err != nil {
		return nil, err
	}
	info := s.CachedInfo()
	if fault := unsafeSetting(info.Config, want); fault != "" {
		return nil, fmt.Errorf("%s; entries could be lost, so it is not used: put the setting right with the nats tool", fault)
	}
	if cfg.embedded() && info.Config.MaxBytes != want.MaxBytes {
		if want.MaxBytes < int64(info.State.Bytes) {
			return nil, fmt.Errorf("it holds %d bytes and its limit would be %d; raise the store's limit", info.State.Bytes, want.MaxBytes)
		}
		config := info.Config
		config.MaxBytes = want.MaxBytes
		if s, err = js.UpdateStream(ctx, config); err != nil {
			return nil, err
		}
		info = s.CachedInfo()
	}
	return info, nil
}

// giveSubjects lets a stream of an earlier version listen on what has been added since: the advisories of a new
// consumer. One that listens on anything else is left for unsafeSetting to refuse.
func giveSubjects(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	config := s.CachedInfo().Config
	if want.Name != deadStream || len(config.Subjects) >= len(want.Subjects) {
		return s, nil
	}
	for _, subject := range config.Subjects {
		if !slices.Contains(want.Subjects, subject) {
			return s, nil
		}
	}
	config.Subjects = want.Subjects
	return js.UpdateStream(ctx, config)
}

// unsafeSetting says what is wrong with a stream that somebody else made, "" if nothing.
func unsafeSetting(have, want jetstream.StreamConfig) string {
	slices.Sort(have.Subjects)
	slices.Sort(want.Subjects)
	switch {
	case !slices.Equal(have.Subjects, want.Subjects):
		return fmt.Sprintf("it listens on %v and not on %v", have.Subjects, want.Subjects)
	case have.Retention != want.Retention:
		return "its retention is " + have.Retention.String() + " and not " + want.Retention.String()
	case have.Discard != want.Discard:
		return "it discards " + have.Discard.String() + " and not " + want.Discard.String()
	case have.Storage != want.Storage:
		return "its storage is " + have.Storage.String() + " and not " + want.Storage.String()
	case have.Compression != want.Compression:
		return "it is compressed by the server"
	case have.PersistMode != jetstream.DefaultPersistMode:
		return "its persist mode is not the default, so its writes are not synced"
	case have.DenyDelete != want.DenyDelete:
		return fmt.Sprintf("deny_delete is %v", have.DenyDelete)
	case have.AllowDirect != want.AllowDirect:
		return fmt.Sprintf("allow_direct is %v", have.AllowDirect)
	case want.MaxAge == 0 && have.MaxAge != 0:
		return fmt.Sprintf("its entries expire after %s", have.MaxAge)
	case want.MaxMsgsPerSubject > 0 && (have.MaxMsgsPerSubject != want.MaxMsgsPerSubject || have.DiscardNewPerSubject):
		return "it does not keep the newest entry of each subject, and that one alone"
	case have.MaxMsgs > 0 && want.Discard == jetstream.DiscardOld,
		want.MaxMsgsPerSubject <= 0 && have.MaxMsgsPerSubject > 0 && !have.DiscardNewPerSubject:
		return "it discards entries beyond a number of messages"
	}
	return ""
}

// workers is the consumer that all who work on a stream share; one without a name where nobody does.
//
// BackOff stays unset: its first value would silently replace AckWait (bus.md §1.6). The queue of folds allows one
// delivery more than a job may fail: whoever gets that one makes a dead letter of the job, its payload included, where
// the server would only note a place on a queue that forgets.
func workers(cfg Config, stream string) jetstream.ConsumerConfig {
	consumer := jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: cfg.AckWait, MaxDeliver: cfg.MaxDeliver, MaxAckPending: cfg.MaxAckPending, MaxWaiting: 512,
	}
	switch {
	case stream == foldStream:
		consumer.Durable = foldConsumer
		consumer.MaxDeliver++
	case stream == redoStream || strings.HasPrefix(stream, "REC_"):
		consumer.Durable = mintConsumer
	}
	return consumer
}

// ensureWorkers makes the consumer, so that entries count as waiting from the first on, a worker connected or not. In
// a cluster the first to come sets it; embedded, the configuration does.
func ensureWorkers(ctx context.Context, cfg Config, js jetstream.JetStream, stream string, want jetstream.ConsumerConfig) error {
	if cfg.embedded() {
		_, err := js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	}
	_, err := js.CreateConsumer(ctx, stream, want)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return nil
	}
	return err
}
