-- By what a task is recognised in a request that does not name it: the session that its frames tell of, and marks of its
-- history. All of it is a fold of frames that were written since; older ones tell of none.

ALTER TABLE task ADD COLUMN session TEXT NOT NULL DEFAULT '';     -- of the newest frame that tells of one
ALTER TABLE task ADD COLUMN border INTEGER NOT NULL DEFAULT 0;    -- the mark of the path, of the newest frame that has one
ALTER TABLE task ADD COLUMN first_seq INTEGER NOT NULL DEFAULT 0; -- sequence of the first frame
UPDATE task SET first_seq = coalesce((SELECT min(seq) FROM task_frame WHERE task = task.id), 0) WHERE state <> 3;

CREATE INDEX task_session ON task(tenant, session) WHERE session <> '';

-- A mark is mixed with its tenant, so that what two tenants both say does not meet in one place of the tree.
CREATE TABLE task_mark (
  mark INTEGER NOT NULL,
  task INTEGER NOT NULL REFERENCES task(id),
  seq  INTEGER NOT NULL,                     -- of the frame that brought it first
  PRIMARY KEY (mark, task)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER task_mark_frozen BEFORE UPDATE ON task_mark
  BEGIN SELECT RAISE(ABORT, 'task_mark is append-only'); END;
CREATE TRIGGER task_mark_kept BEFORE DELETE ON task_mark
  WHEN (SELECT state FROM task WHERE id = OLD.task) IS NOT 2
  BEGIN SELECT RAISE(ABORT, 'task_mark is append-only'); END;
CREATE TRIGGER task_mark_once BEFORE INSERT ON task_mark
  WHEN EXISTS (SELECT 1 FROM task_mark WHERE mark = NEW.mark AND task = NEW.task)
  BEGIN SELECT RAISE(IGNORE); END;
