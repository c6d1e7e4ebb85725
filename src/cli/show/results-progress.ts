/** Shows how far a sync of a job's results has come: a bar on a terminal, now and then a line elsewhere. */
import { showBytes } from '../../numbers.ts';
import { bytesPerSecond } from '../../store/results.ts';
import type { ResultSyncRow } from '../../store/rows.ts';
import { BottomLines, bar, type Terminal } from './bottom-lines.ts';

export interface ResultsProgress {
  show(row: ResultSyncRow): void;
  /** Takes the bar away. */
  close(): void;
}

/** When something is shown first, and how often then, in milliseconds. */
export const PACE = { bar: { firstMs: 1_000, everyMs: 200 }, line: { firstMs: 10_000, everyMs: 10_000 } } as const;
const BAR_COLUMNS = 24;

export function resultsProgress(stream: Terminal): ResultsProgress {
  const bottom = new BottomLines(stream);
  const { firstMs, everyMs } = stream.isTTY === true ? PACE.bar : PACE.line;
  let nextAt = 0;
  return {
    show(row) {
      const { startedAt, updatedAt, done, wanted, bytes, wantedBytes } = row;
      nextAt = Math.max(nextAt, startedAt + firstMs);
      if (wanted === 0 || updatedAt < nextAt) return;
      nextAt = updatedAt + everyMs;
      const rate = `${showBytes(Math.round(bytesPerSecond(row)))}/s`;
      const text = `${done} of ${wanted} files, ${showBytes(bytes)}${wantedBytes === null ? '' : ` of ${showBytes(wantedBytes)}`}, ${rate}, ${timeLeft(row)}`;
      if (stream.isTTY === true) bottom.show([`results [${bar(shareOf(row), BAR_COLUMNS)}] ${text}`]);
      else bottom.write(`results: ${text}\n`);
    },
    close: () => bottom.clear(),
  };
}

/** How much of it is here, from 0 to 1. */
const shareOf = ({ done, wanted, bytes, wantedBytes }: ResultSyncRow) =>
  wantedBytes === null || wantedBytes === 0 ? done / wanted : bytes / wantedBytes;

/** By bytes where the sizes are known; a first fetch has none from the listing, and goes by files. */
function timeLeft({ startedAt, updatedAt, done, wanted, bytes, wantedBytes }: ResultSyncRow): string {
  const [arrived, all] = wantedBytes === null ? [done, wanted] : [bytes, wantedBytes];
  if (arrived === 0) return 'time left unknown';
  const seconds = Math.round(((updatedAt - startedAt) / arrived) * Math.max(0, all - arrived)) / 1000;
  return seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`;
}
