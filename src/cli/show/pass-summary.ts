/** What a complete pass found, in lines for people. */
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import type { JobId } from '../../job.ts';
import { countOf, showAge, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';

export function summaryText(jobId: JobId, summary: PassSummary): string {
  const { appended, liveFiles, verified, openEnds, results } = summary;
  const live = `${countOf(liveFiles, 'live file')}, ${verified} verified against the raw bytes of the server`;
  const lines = [`job ${jobId}: ${live}; ${showBytes(appended)} new`];
  for (const { taskId, file, reason } of openEnds)
    lines.push(`  task ${taskId} ${file}: not verified: ${printable(reason)}`);
  if (results !== null) {
    const { fetched, changed, failed, refused, leftOut, bytes, tookMs } = results;
    const other = [
      [failed, 'failed'],
      [refused, 'refused by name'],
      [leftOut, 'left out'],
    ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
    const why = other.length === 0 ? '' : `; ${other.join(', ')} (agent status ${jobId} says why)`;
    const rate = bytes === 0 ? '' : ` in ${showAge(tookMs)} (${showBytes(Math.round((bytes * 1000) / tookMs))}/s)`;
    const came = `${countOf(fetched, 'result')} looked at, ${changed} new or changed, ${showBytes(bytes)}${rate}`;
    lines.push(`job ${jobId}: ${came}${why}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Everything is there and verified. */
export function summaryIsWhole({ openEnds, results }: PassSummary): boolean {
  return openEnds.length === 0 && (results === null || results.failed + results.refused === 0);
}
