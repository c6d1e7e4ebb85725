/** What a complete pass found, in lines for people. */
import type { PassSummary } from '../agent/final-pass.ts';
import type { JobId } from '../job.ts';
import { countOf, showBytes } from './show.ts';

export function summaryLines(jobId: JobId, summary: PassSummary): string[] {
  const { appended, liveFiles, verified, openEnds, results } = summary;
  const live = `${countOf(liveFiles, 'live file')}, ${verified} verified against the raw bytes of the server`;
  const lines = [`job ${jobId}: ${live}; ${showBytes(appended)} new`];
  for (const { taskId, file, reason } of openEnds) lines.push(`  task ${taskId} ${file}: not verified: ${reason}`);
  if (results !== null) {
    const failed = results.failed === 0 ? '' : `, ${results.failed} failed (agent status ${jobId} says why)`;
    lines.push(
      `job ${jobId}: ${countOf(results.fetched, 'result')} looked at, ${results.changed} new or changed${failed}`,
    );
  }
  return lines;
}

/** Everything is there and proven. */
export function summaryIsWhole({ openEnds, results }: PassSummary): boolean {
  return openEnds.length === 0 && (results === null || results.failed === 0);
}
