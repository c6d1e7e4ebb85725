/** Jobs that were removed from a fleet. Their ids stay, so that no rule and no configuration follows them again. */
import { requireOver } from '../../agent/forget.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { printable } from '../../printable.ts';
import type { WatchState } from '../../store/rows.ts';
import type { Queries } from '../database/tables.ts';

/** The state of a removed job. */
export const FORGOTTEN = 'forgotten';

interface Claimed {
  readonly jobId: JobId;
  readonly state: string;
  readonly owner: string | null;
}

/** Within a transaction. An owner writes the last rows of a job before it releases it. @throws JobtailError */
export async function forgetRows(sql: Queries, jobId: JobId): Promise<void> {
  await lockFree(sql, jobId);
  for (const table of ['rows', 'orders', 'attempts'])
    await sql.query(`DELETE FROM {s}.${table} WHERE job_id = $1`, [jobId]);
  await sql.query(`UPDATE {s}.jobs SET state = '${FORGOTTEN}', source = 'command', mirror = NULL WHERE job_id = $1`, [
    jobId,
  ]);
}

/** Until the end of the transaction, no agent takes the job, and no command for it is placed. @throws JobtailError */
export async function lockFree(sql: Queries, jobId: JobId): Promise<void> {
  const [job] = await sql.query<Claimed>(
    `SELECT job_id AS "jobId", state, CASE WHEN waiting_since IS NULL THEN owner ELSE 'the next agent' END AS owner
     FROM {s}.jobs WHERE job_id = $1 FOR UPDATE`,
    [jobId],
  );
  if (job === undefined || job.state === FORGOTTEN) throw new JobtailError('job-unknown', `job ${jobId} is not known`);
  requireFree(job);
}

/** @throws JobtailError if the job is followed, or an agent works on it */
export function requireFree({ jobId, state, owner }: Claimed): void {
  requireOver({ jobId, state: state as WatchState });
  if (owner === null) return;
  throw new JobtailError('fleet', `${printable(owner)} still works on job ${jobId}`, {
    hint: 'run the command again in a moment',
  });
}
