-- A node's copy of the log: what stands here is a fold of the log entries and can be built anew from them.
-- Tables that hold the record are append-only, and the schema says so itself: a trigger cannot be forgotten as a
-- pragma can, and one on INSERT stops what INSERT OR REPLACE would otherwise rewrite without any UPDATE or DELETE.
-- Tables with bodies are rowid tables: with keys and bodies in one WITHOUT ROWID tree, inserts are four times slower.
-- Contents that take less than a page stand in their rows: finding a blob by its hash writes a page for each.

PRAGMA application_id = 0x554C4731; -- "ULG1"

CREATE TABLE task (
  id        INTEGER PRIMARY KEY,            -- local surrogate: never leaves this file
  tenant    TEXT    NOT NULL,
  task      TEXT    NOT NULL,
  head_seq  INTEGER NOT NULL DEFAULT 0,     -- sequence of the last frame applied
  head_hash BLOB    NOT NULL DEFAULT x'',   -- its hash: where the task's chain stands
  rows      INTEGER NOT NULL DEFAULT 0,     -- messages held
  path      INTEGER NOT NULL DEFAULT 0,     -- messages on the path
  steps     INTEGER NOT NULL DEFAULT 0,     -- frames that carry a step
  format    TEXT    NOT NULL DEFAULT '',
  state     INTEGER NOT NULL DEFAULT 0 CHECK (state IN (0, 2, 3)), -- 0 live, 2 being erased, 3 tombstone
  UNIQUE (tenant, task)
) STRICT;

CREATE INDEX task_erase ON task(tenant) WHERE state = 2;

CREATE TRIGGER task_tombstone BEFORE UPDATE ON task WHEN OLD.state = 3
  BEGIN SELECT RAISE(ABORT, 'the task was purged'); END;
CREATE TRIGGER task_once BEFORE INSERT ON task
  WHEN EXISTS (SELECT 1 FROM task WHERE id = NEW.id OR (tenant = NEW.tenant AND task = NEW.task))
  BEGIN SELECT RAISE(ABORT, 'the task is there already'); END;
CREATE TRIGGER task_kept BEFORE DELETE ON task
  BEGIN SELECT RAISE(ABORT, 'a task is never forgotten: purging leaves a tombstone'); END;

CREATE TABLE blob (
  id      INTEGER PRIMARY KEY,
  tenant  TEXT    NOT NULL,                  -- shared between a tenant's tasks, never between tenants
  hash    BLOB    NOT NULL CHECK (length(hash) = 32), -- SHA-256 of the content unpacked
  enc     INTEGER NOT NULL CHECK (enc IN (0, 1)),     -- 0 plain, 1 zstd
  raw_len INTEGER NOT NULL,
  body    BLOB    NOT NULL,                  -- last: the columns before it are read without its overflow pages
  UNIQUE (hash, tenant)
) STRICT;

CREATE TRIGGER blob_frozen BEFORE UPDATE ON blob
  BEGIN SELECT RAISE(ABORT, 'blob is append-only'); END;
CREATE TRIGGER blob_once BEFORE INSERT ON blob
  WHEN EXISTS (SELECT 1 FROM blob WHERE hash = NEW.hash AND tenant = NEW.tenant)
    OR EXISTS (SELECT 1 FROM blob WHERE id = NEW.id)
  BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER blob_kept BEFORE DELETE ON blob
  WHEN NOT EXISTS (SELECT 1 FROM task WHERE tenant = OLD.tenant AND state = 2)
  BEGIN SELECT RAISE(ABORT, 'blob is append-only'); END;

-- One row for each frame, as the log brought it: body is the encoded entry, whose messages stand in task_message.
-- path is the list of rows that the history consists of behind the frame, as runs.
CREATE TABLE task_frame (
  task     INTEGER NOT NULL REFERENCES task(id),
  seq      INTEGER NOT NULL,
  hash     BLOB    NOT NULL CHECK (length(hash) = 32),
  rows     INTEGER NOT NULL,                 -- messages held behind the frame
  step     INTEGER,                          -- ordinal of its step, if it carries one
  envelope INTEGER NOT NULL,                 -- sequence of the newest frame with an envelope, 0 for none
  layout   INTEGER NOT NULL,                 -- the same for the layout
  path     BLOB    NOT NULL,
  body     BLOB    NOT NULL,
  UNIQUE (task, seq)
) STRICT;

CREATE TRIGGER task_frame_frozen BEFORE UPDATE ON task_frame
  BEGIN SELECT RAISE(ABORT, 'task_frame is append-only'); END;
CREATE TRIGGER task_frame_kept BEFORE DELETE ON task_frame
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'task_frame is append-only'); END;
CREATE TRIGGER task_frame_forward BEFORE INSERT ON task_frame
  WHEN EXISTS (SELECT 1 FROM task_frame WHERE task = NEW.task AND seq >= NEW.seq)
    OR EXISTS (SELECT 1 FROM task_frame WHERE rowid = NEW.rowid)
  BEGIN SELECT RAISE(ABORT, 'task_frame only grows at its end'); END;

CREATE TABLE task_message (
  task INTEGER NOT NULL REFERENCES task(id),
  n    INTEGER NOT NULL,                     -- 0, 1, 2 … within the task, no gaps
  seq  INTEGER NOT NULL,                     -- of the frame that brought it
  hash BLOB    NOT NULL CHECK (length(hash) = 32), -- of the message unpacked
  blob INTEGER REFERENCES blob(id),
  enc     INTEGER,                           -- as in blob; of body
  raw_len INTEGER,
  body    BLOB,                              -- inline when small
  UNIQUE (task, n),
  CHECK ((blob IS NULL) <> (body IS NULL))
) STRICT;

CREATE INDEX task_message_blob ON task_message(blob) WHERE blob IS NOT NULL;

CREATE TRIGGER task_message_frozen BEFORE UPDATE ON task_message
  BEGIN SELECT RAISE(ABORT, 'task_message is append-only'); END;
CREATE TRIGGER task_message_kept BEFORE DELETE ON task_message
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'task_message is append-only'); END;
CREATE TRIGGER task_message_gapless BEFORE INSERT ON task_message
  WHEN NEW.n <> (SELECT coalesce(max(n) + 1, 0) FROM task_message WHERE task = NEW.task)
    OR EXISTS (SELECT 1 FROM task_message WHERE rowid = NEW.rowid)
  BEGIN SELECT RAISE(ABORT, 'gap or repeat in task_message'); END;

-- Tool-finished events. body is the encoded event, whose input and output stand beside it (packed, if they are
-- shorter than the event says) or in blobs.
CREATE TABLE task_call (
  task        INTEGER NOT NULL REFERENCES task(id),
  seq         INTEGER NOT NULL,
  call        TEXT    NOT NULL,              -- toolCallId
  hash        BLOB    NOT NULL CHECK (length(hash) = 32),
  input_blob  INTEGER REFERENCES blob(id),
  output_blob INTEGER REFERENCES blob(id),
  input       BLOB,
  output      BLOB,
  body        BLOB    NOT NULL,
  UNIQUE (task, call, seq)
) STRICT;

CREATE INDEX task_call_input  ON task_call(input_blob)  WHERE input_blob  IS NOT NULL;
CREATE INDEX task_call_output ON task_call(output_blob) WHERE output_blob IS NOT NULL;

CREATE TRIGGER task_call_frozen BEFORE UPDATE ON task_call
  BEGIN SELECT RAISE(ABORT, 'task_call is append-only'); END;
CREATE TRIGGER task_call_kept BEFORE DELETE ON task_call
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'task_call is append-only'); END;
CREATE TRIGGER task_call_once BEFORE INSERT ON task_call
  WHEN EXISTS (SELECT 1 FROM task_call WHERE task = NEW.task AND call = NEW.call AND seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM task_call WHERE rowid = NEW.rowid)
  BEGIN SELECT RAISE(IGNORE); END;

-- What is applied, with its history: a row for each time that a key rose, or that a form of the same rung took over. The entry itself stands in the frame at
-- seq. The newest row of a key at or below a frame is what was applied right after that frame.
CREATE TABLE task_compaction_snapshot (
  task INTEGER NOT NULL REFERENCES task(id),
  key  TEXT    NOT NULL,                     -- part address, coverage:<hex>, or meta:anchor
  chk  BLOB    NOT NULL,                     -- digest of the check value beside a part address, else empty
  seq  INTEGER NOT NULL,
  rank INTEGER NOT NULL,                     -- rung of a form, source of a fold; 0 for meta:anchor
  PRIMARY KEY (task, key, chk, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER task_compaction_snapshot_frozen BEFORE UPDATE ON task_compaction_snapshot
  BEGIN SELECT RAISE(ABORT, 'task_compaction_snapshot is append-only'); END;
CREATE TRIGGER task_compaction_snapshot_kept BEFORE DELETE ON task_compaction_snapshot
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'task_compaction_snapshot is append-only'); END;
CREATE TRIGGER task_compaction_snapshot_once BEFORE INSERT ON task_compaction_snapshot
  WHEN EXISTS (SELECT 1 FROM task_compaction_snapshot
               WHERE task = NEW.task AND key = NEW.key AND chk = NEW.chk AND seq >= NEW.seq)
  BEGIN SELECT RAISE(ABORT, 'task_compaction_snapshot only grows at its end'); END;
CREATE TRIGGER task_compaction_snapshot_rises BEFORE INSERT ON task_compaction_snapshot
  WHEN NEW.key <> 'meta:anchor'
   AND EXISTS (SELECT 1 FROM task_compaction_snapshot
               WHERE task = NEW.task AND key = NEW.key AND chk = NEW.chk
                 AND (rank > NEW.rank OR (rank = NEW.rank AND NEW.key LIKE 'coverage:%')))
  BEGIN SELECT RAISE(IGNORE); END;

-- What is available for a call under a check value: the highest rung, then the first in the log. The rule stands in
-- the triggers, so that no order of writes and no statement ends elsewhere.
CREATE TABLE task_tool_compaction (
  task       INTEGER NOT NULL REFERENCES task(id),
  call       TEXT    NOT NULL,               -- toolCallId
  chk        BLOB    NOT NULL,               -- digest of the check value
  rank       INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  rule       TEXT    NOT NULL,               -- rule name and version that made it
  raw_input  BLOB    NOT NULL,               -- the offload pointers: digests of the raw input and output
  raw_output BLOB    NOT NULL,
  hash       BLOB    NOT NULL CHECK (length(hash) = 32),
  body       BLOB    NOT NULL,               -- the encoded entry
  UNIQUE (task, call, chk)
) STRICT;

CREATE TRIGGER task_tool_compaction_better BEFORE INSERT ON task_tool_compaction
  WHEN EXISTS (SELECT 1 FROM task_tool_compaction WHERE task = NEW.task AND call = NEW.call AND chk = NEW.chk
               AND (rank > NEW.rank OR (rank = NEW.rank AND seq <= NEW.seq)))
    OR EXISTS (SELECT 1 FROM task_tool_compaction WHERE rowid = NEW.rowid)
  BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER task_tool_compaction_rises BEFORE UPDATE ON task_tool_compaction
  WHEN NEW.task <> OLD.task OR NEW.call <> OLD.call OR NEW.chk <> OLD.chk
    OR NEW.rank < OLD.rank OR (NEW.rank = OLD.rank AND NEW.seq >= OLD.seq)
  BEGIN SELECT RAISE(ABORT, 'an available form only gives way to a better one'); END;
CREATE TRIGGER task_tool_compaction_kept BEFORE DELETE ON task_tool_compaction
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'an available form is never taken back'); END;

-- The same for folds: the highest source, then the first in the log.
CREATE TABLE task_fold (
  task     INTEGER NOT NULL REFERENCES task(id),
  coverage BLOB    NOT NULL CHECK (length(coverage) = 32),
  rank     INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  hash     BLOB    NOT NULL CHECK (length(hash) = 32),
  body     BLOB    NOT NULL,
  UNIQUE (task, coverage)
) STRICT;

CREATE TRIGGER task_fold_better BEFORE INSERT ON task_fold
  WHEN EXISTS (SELECT 1 FROM task_fold WHERE task = NEW.task AND coverage = NEW.coverage
               AND (rank > NEW.rank OR (rank = NEW.rank AND seq <= NEW.seq)))
    OR EXISTS (SELECT 1 FROM task_fold WHERE rowid = NEW.rowid)
  BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER task_fold_rises BEFORE UPDATE ON task_fold
  WHEN NEW.task <> OLD.task OR NEW.coverage <> OLD.coverage
    OR NEW.rank < OLD.rank OR (NEW.rank = OLD.rank AND NEW.seq >= OLD.seq)
  BEGIN SELECT RAISE(ABORT, 'an available fold only gives way to a better one'); END;
CREATE TRIGGER task_fold_kept BEFORE DELETE ON task_fold
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'an available fold is never taken back'); END;

CREATE TABLE shard_cursor (                  -- moved in the same transaction as the rows it covers
  stream  TEXT PRIMARY KEY,
  epoch   TEXT    NOT NULL,                  -- the stream's identity: another epoch means another log
  applied INTEGER NOT NULL
) STRICT;

CREATE TRIGGER shard_cursor_forward BEFORE UPDATE ON shard_cursor
  WHEN NEW.stream <> OLD.stream OR NEW.epoch <> OLD.epoch OR NEW.applied < OLD.applied
  BEGIN SELECT RAISE(ABORT, 'a cursor never moves back'); END;
CREATE TRIGGER shard_cursor_once BEFORE INSERT ON shard_cursor
  WHEN EXISTS (SELECT 1 FROM shard_cursor WHERE stream = NEW.stream)
  BEGIN SELECT RAISE(ABORT, 'a cursor only moves by UPDATE'); END;
