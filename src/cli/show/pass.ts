/** The progress and the result of a complete pass, for people. */
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import type { Verification } from '../../agent/pass/verification.ts';
import type { JobId } from '../../job.ts';
import { countOf, showAge, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { NOTHING_LISTED } from '../../proven.ts';
import { bytesPerSecond } from '../../store/results.ts';
import type { ResultSyncRow } from '../../store/rows.ts';
import { BottomLines, bar, type Terminal } from './terminal.ts';

const FIRST_MS = 1_000;
const EVERY_MS = 200;
const BAR_COLUMNS = 24;

/** On a terminal; it is gone at the end. */
export function resultsProgress(stream: Terminal) {
  const bottom = new BottomLines(stream);
  let nextAt = 0;
  return {
    show(row: ResultSyncRow) {
      const { startedAt, updatedAt, done, wanted, bytes, wantedBytes } = row;
      nextAt = Math.max(nextAt, startedAt + FIRST_MS);
      if (wanted === 0 || updatedAt < nextAt) return;
      nextAt = updatedAt + EVERY_MS;
      const rate = `${showBytes(Math.round(bytesPerSecond(row)))}/s`;
      const [arrived, all] = progressOf(row);
      const left = timeLeft(updatedAt - startedAt, arrived, all);
      const text = `${done} of ${wanted} files, ${showBytes(bytes)}${wantedBytes === null ? '' : ` of ${showBytes(wantedBytes)}`}, ${rate}, ${left}`;
      bottom.show([`results [${bar(arrived / all, BAR_COLUMNS)}] ${text}`]);
    },
    close: () => bottom.clear(),
  };
}

/** By bytes if the sizes are known; a listing has none, so a first fetch counts files. */
const progressOf = ({ done, wanted, bytes, wantedBytes }: ResultSyncRow): [arrived: number, all: number] =>
  wantedBytes === null || wantedBytes === 0 ? [done, wanted] : [bytes, wantedBytes];

function timeLeft(elapsedMs: number, arrived: number, all: number): string {
  if (arrived === 0) return 'time left unknown';
  const seconds = Math.round((elapsedMs / arrived) * Math.max(0, all - arrived)) / 1000;
  return seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`;
}

export function summaryText(jobId: JobId, summary: PassSummary): string {
  const { appended, liveFiles, verified, openEnds, results, isListingEmpty } = summary;
  const live = `${countOf(liveFiles, 'live file')}, ${verified} verified against the raw bytes of the server`;
  const lines = [`job ${jobId}: ${live}; ${showBytes(appended)} new`];
  for (const { taskId, file, reason } of openEnds)
    lines.push(`  task ${taskId} ${file}: not verified: ${printable(reason)}`);
  if (isListingEmpty) lines.push(`job ${jobId}: ${NOTHING_LISTED} (agent status ${jobId})`);
  if (results !== null) {
    const { listed, fetched, changed, failed, refused, leftOut, bytes, tookMs } = results;
    const other = [
      [failed, 'failed'],
      [refused, 'refused'],
      [leftOut, 'left out'],
    ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
    const why = other.length === 0 ? '' : `; ${other.join(', ')} (reasons: agent status ${jobId})`;
    const rate = bytes === 0 ? '' : ` in ${showAge(tookMs)} (${showBytes(Math.round((bytes * 1000) / tookMs))}/s)`;
    const came = `${countOf(listed, 'result')} listed, ${fetched} fetched, ${changed} new or changed, ${showBytes(bytes)}${rate}`;
    lines.push(`job ${jobId}: ${came}${why}`);
  }
  return `${lines.join('\n')}\n`;
}

export function summaryIsWhole({ openEnds, results, isListingEmpty }: PassSummary): boolean {
  return openEnds.length === 0 && !isListingEmpty && (results === null || results.failed + results.refused === 0);
}

/** What the listing of the service leaves out (docs/dev/rest.md 5, docs/guarantees.md). */
export const NEVER_LISTED =
  'not compared: files that the service never lists, such as those dated before the submission (tar -x, cp -p, a zone west of UTC), those outside of the directories of the tasks, and those written in the second of the submission (--complete finds them over SSH or a share)';

/** The JSON of `agent verify`. What is in place of a file is in the reason, in words. */
export const verificationReport = (jobId: JobId, { files, cluster }: Verification) => ({
  jobId,
  files: files.map(({ name, proof }) => ({ name, proof: { ...proof, inPlace: undefined } })),
  cluster,
  notCompared: cluster === null ? NEVER_LISTED : null,
});
