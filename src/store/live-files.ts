/** The committed state of the live mirrors. */
import type { JobId, LiveFileKey, LiveFileName, TaskId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { InexactRegion, LiveFileRow, Trouble } from './rows.ts';
import { troubleOf, troubleText } from './trouble-text.ts';

interface RawLiveFile {
  job_id: JobId;
  task_id: TaskId;
  file: LiveFileName;
  position: number;
  generation: number;
  fingerprint: string | null;
  inexact: string;
  inode: string | null;
  modified_ns: string | null;
  boot_id: string | null;
  rotation: LiveFileRow['rotation'];
  relative_path: string | null;
  listed_name: string | null;
  grown_at: number | null;
  verified: number | null;
  error: string | null;
}

export class LiveFiles {
  readonly #ofJob;
  readonly #save;
  readonly #saveError;

  constructor(db: SqliteDatabase) {
    this.#ofJob = db.prepare<[string], RawLiveFile>('SELECT * FROM live_files WHERE job_id = ?');
    this.#save = db.prepare(`
      UPDATE live_files SET position = @position, generation = @generation, fingerprint = @fingerprint, inexact = @inexact,
        inode = @inode, modified_ns = @modifiedNs, boot_id = @bootId, rotation = @rotation, relative_path = @relativePath, listed_name = @listedName,
        grown_at = @grownAt, verified = @verified, error = @error
      WHERE job_id = @jobId AND task_id = @taskId AND file = @file`);
    this.#saveError = db.prepare('UPDATE live_files SET error = ? WHERE job_id = ? AND task_id = ? AND file = ?');
  }

  ofJob(jobId: JobId): LiveFileRow[] {
    return this.#ofJob.all(jobId).map(rowOf);
  }

  /** Commits the state of a mirror: only after its bytes were flushed. */
  save(row: LiveFileRow): void {
    this.#save.run({ ...row, inexact: JSON.stringify(row.inexact), error: troubleText(row.error) });
  }

  setError(jobId: JobId, key: LiveFileKey, error: Trouble | null): void {
    this.#saveError.run(troubleText(error), jobId, key.taskId, key.file);
  }
}

function rowOf(raw: RawLiveFile): LiveFileRow {
  return {
    jobId: raw.job_id,
    taskId: raw.task_id,
    file: raw.file,
    position: raw.position,
    generation: raw.generation,
    fingerprint: raw.fingerprint,
    inexact: JSON.parse(raw.inexact) as InexactRegion[],
    inode: raw.inode,
    modifiedNs: raw.modified_ns,
    bootId: raw.boot_id,
    rotation: raw.rotation,
    relativePath: raw.relative_path,
    listedName: raw.listed_name,
    grownAt: raw.grown_at,
    verified: raw.verified,
    error: troubleOf(raw.error),
  };
}
