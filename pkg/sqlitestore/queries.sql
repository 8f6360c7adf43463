-- The statements of the store, by name. The writer prepares those whose names begin with a verb of change; readers
-- the others.

-- name: insert_task
INSERT INTO task(tenant, task) VALUES (?, ?);

-- name: move_head
UPDATE task SET head_seq = ?2, head_hash = ?3, rows = ?4, path = ?5, steps = ?6, format = ?7, border = ?8, first_seq = ?9 WHERE id = ?1;

-- name: move_session
UPDATE task SET session = ?2 WHERE id = ?1;

-- name: insert_mark
INSERT INTO task_mark(mark, task, seq) VALUES (?, ?, ?);

-- name: insert_blob
INSERT INTO blob(tenant, hash, enc, raw_len, body) VALUES (?, ?, ?, ?, ?);

-- name: insert_frame
INSERT INTO task_frame(task, seq, hash, rows, step, envelope, layout, path, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_message
INSERT INTO task_message(task, n, seq, hash, blob, enc, raw_len, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_call
INSERT INTO task_call(task, seq, call, hash, input_blob, output_blob, input, output, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_snapshot
INSERT INTO task_compaction_snapshot(task, key, chk, seq, rank) VALUES (?, ?, ?, ?, ?);

-- name: insert_form
INSERT INTO task_tool_compaction(task, call, chk, rank, seq, rule, raw_input, raw_output, hash, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(task, call, chk) DO UPDATE SET rank = excluded.rank, seq = excluded.seq, rule = excluded.rule,
  raw_input = excluded.raw_input, raw_output = excluded.raw_output, hash = excluded.hash, body = excluded.body;

-- name: insert_fold
INSERT INTO task_fold(task, coverage, rank, seq, hash, body) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT(task, coverage) DO UPDATE SET rank = excluded.rank, seq = excluded.seq, hash = excluded.hash, body = excluded.body;

-- name: insert_cursor
INSERT INTO shard_cursor(stream, epoch, applied) VALUES (?, ?, ?);

-- name: move_cursor
UPDATE shard_cursor SET applied = ?2 WHERE stream = ?1;

-- name: erase_begin
UPDATE task SET state = 2 WHERE id = ?;

-- name: erase_list_blobs
SELECT blob FROM task_message WHERE task = ?1 AND blob IS NOT NULL
UNION SELECT b.id FROM task_message m JOIN blob b ON b.hash = m.hash AND b.tenant = ?2 WHERE m.task = ?1 AND m.blob IS NULL
UNION SELECT input_blob FROM task_call WHERE task = ?1 AND input_blob IS NOT NULL
UNION SELECT output_blob FROM task_call WHERE task = ?1 AND output_blob IS NOT NULL;

-- name: erase_frames
DELETE FROM task_frame WHERE task = ?;

-- name: erase_messages
DELETE FROM task_message WHERE task = ?;

-- name: erase_calls
DELETE FROM task_call WHERE task = ?;

-- name: erase_snapshot
DELETE FROM task_compaction_snapshot WHERE task = ?;

-- name: erase_forms
DELETE FROM task_tool_compaction WHERE task = ?;

-- name: erase_folds
DELETE FROM task_fold WHERE task = ?;

-- name: erase_list_frames
SELECT hash, body FROM task_frame WHERE task = ?;

-- name: erase_marks
DELETE FROM task_mark WHERE task = ?;

-- name: erase_mark
DELETE FROM task_mark WHERE mark = ? AND task = ?;

-- name: erase_blob
DELETE FROM blob WHERE id = ?1
  AND NOT EXISTS (SELECT 1 FROM task_message WHERE blob = ?1)
  AND NOT EXISTS (SELECT 1 FROM task_call WHERE input_blob = ?1)
  AND NOT EXISTS (SELECT 1 FROM task_call WHERE output_blob = ?1);

-- name: erase_end
UPDATE task SET head_seq = 0, head_hash = x'', rows = 0, path = 0, steps = 0, format = '', session = '', border = 0, first_seq = 0, state = 3 WHERE id = ?;

-- name: task
SELECT id, head_seq, head_hash, rows, path, steps, format, session, border, first_seq, state FROM task WHERE tenant = ? AND task = ?;

-- name: marked
SELECT t.task, m.seq FROM task_mark m JOIN task t ON t.id = m.task
WHERE m.mark = ?1 AND t.tenant = ?2 ORDER BY m.seq DESC, t.task LIMIT ?3;

-- name: in_session
SELECT task FROM task WHERE tenant = ?1 AND session = ?2 AND session <> '' ORDER BY head_seq DESC, task LIMIT ?3;

-- name: tasks
SELECT task FROM task WHERE tenant = ? AND state = 0 ORDER BY task;

-- name: cursor
SELECT epoch, applied FROM shard_cursor WHERE stream = ?;

-- name: frame_hash
SELECT hash FROM task_frame WHERE task = ? AND seq = ?;

-- name: frame_place
SELECT seq, path, envelope, layout FROM task_frame WHERE task = ? AND seq <= ? ORDER BY seq DESC LIMIT 1;

-- name: frame_body
SELECT hash, body FROM task_frame WHERE task = ? AND seq = ?;

-- name: frame_steps
SELECT step, seq, hash, body FROM task_frame WHERE task = ? AND step IS NOT NULL ORDER BY seq;

-- name: messages
SELECT m.n, m.hash, coalesce(m.enc, b.enc), coalesce(m.raw_len, b.raw_len), coalesce(m.body, b.body)
FROM task_message m LEFT JOIN blob b ON b.id = m.blob
WHERE m.task = ? AND m.n >= ? AND m.n < ? ORDER BY m.n;

-- name: snapshot_frames
SELECT seq, hash, body FROM task_frame WHERE task = ?1 AND seq IN (
  SELECT seq FROM task_compaction_snapshot WHERE task = ?1 AND key < 'meta:anchor' AND seq <= ?2
  UNION ALL SELECT seq FROM task_compaction_snapshot WHERE task = ?1 AND key > 'meta:anchor' AND seq <= ?2
  UNION ALL SELECT max(seq) FROM task_compaction_snapshot WHERE task = ?1 AND key = 'meta:anchor' AND seq <= ?2)
ORDER BY seq;

-- name: forms
SELECT seq, hash, body FROM task_tool_compaction WHERE task = ?;

-- name: folds
SELECT seq, hash, body FROM task_fold WHERE task = ?;

-- name: calls
SELECT c.seq, c.hash, c.body, coalesce(c.input, i.body), coalesce(c.output, o.body)
FROM task_call c LEFT JOIN blob i ON i.id = c.input_blob LEFT JOIN blob o ON o.id = c.output_blob
WHERE c.task = ? AND c.call = ? ORDER BY c.seq;

-- name: call_hash
SELECT hash FROM task_call WHERE task = ? AND call = ? AND seq = ?;

-- name: blob
SELECT enc, raw_len, body FROM blob WHERE hash = ? AND tenant = ?;

-- name: blob_id
SELECT id FROM blob WHERE hash = ? AND tenant = ?;

-- name: verify_tasks
SELECT id, tenant, task, head_seq, head_hash, rows, path, steps, session, border, first_seq, state FROM task ORDER BY tenant, task;

-- name: verify_blobs
SELECT tenant, hash, enc, raw_len, body FROM blob ORDER BY id;

-- name: verify_frames
SELECT seq, hash, rows, step, path, body FROM task_frame WHERE task = ? ORDER BY seq;

-- name: verify_calls
SELECT c.call, c.seq, c.hash, c.body, i.hash, c.input, o.hash, c.output
FROM task_call c LEFT JOIN blob i ON i.id = c.input_blob LEFT JOIN blob o ON o.id = c.output_blob
WHERE c.task = ? ORDER BY c.seq;

-- name: verify_snapshot
SELECT key, chk, seq, rank FROM task_compaction_snapshot WHERE task = ? ORDER BY key, chk, seq;

-- name: verify_messages
SELECT m.n, m.seq, m.hash, m.enc, m.raw_len, m.body, b.hash FROM task_message m LEFT JOIN blob b ON b.id = m.blob WHERE m.task = ? ORDER BY m.n;

-- name: verify_marks
SELECT mark, task, seq FROM task_mark;
