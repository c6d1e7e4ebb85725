/** Shows how far a sync of a job's results has come: a bar on a terminal, now and then a line elsewhere. */
import cliProgress from 'cli-progress';
import { showBytes } from '../../numbers.ts';
import type { ResultSyncRow } from '../../store/rows.ts';

export interface ResultsProgress {
  show(row: ResultSyncRow): void;
  /** Takes the bar away. */
  close(): void;
}

/** Shorter looks show nothing. */
const FIRST_MS = 1_000;
const LINE_EVERY_MS = 10_000;

export interface ProgressStream extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
}

export function resultsProgress(stream: ProgressStream): ResultsProgress {
  return stream.isTTY === true ? bar(stream) : lines(stream);
}

function bar(stream: ProgressStream): ResultsProgress {
  const shown = new cliProgress.SingleBar({
    stream,
    format: 'results [{bar}] {value} of {total} files, {bytes}, {rate}, {left}',
    barsize: 24,
    hideCursor: true,
    clearOnComplete: true,
    stopOnComplete: false,
    fps: 5,
  });
  let isStarted = false;
  return {
    show(row) {
      if (row.wanted === 0 || row.updatedAt - row.startedAt < FIRST_MS) return;
      const words = { bytes: showBytes(row.bytes), rate: rateOf(row), left: timeLeft(row) };
      if (!isStarted) shown.start(row.wanted, row.done, words);
      else shown.update(row.done, words);
      isStarted = true;
    },
    close() {
      if (isStarted) shown.stop();
    },
  };
}

function lines(stream: ProgressStream): ResultsProgress {
  let nextAt = 0;
  return {
    show(row) {
      nextAt = Math.max(nextAt, row.startedAt + LINE_EVERY_MS);
      if (row.wanted === 0 || row.updatedAt < nextAt) return;
      nextAt = row.updatedAt + LINE_EVERY_MS;
      stream.write(
        `results: ${row.done} of ${row.wanted} files, ${showBytes(row.bytes)}, ${rateOf(row)}, ${timeLeft(row)}\n`,
      );
    },
    close() {},
  };
}

/** Bytes a second of a look, from its beginning. */
export function bytesPerSecond({ startedAt, updatedAt, bytes }: ResultSyncRow): number {
  return updatedAt > startedAt ? (bytes * 1000) / (updatedAt - startedAt) : 0;
}

function rateOf(row: ResultSyncRow): string {
  return `${showBytes(Math.round(bytesPerSecond(row)))}/s`;
}

/** The listing says no sizes, so the time goes by files. */
function timeLeft({ startedAt, updatedAt, done, wanted }: ResultSyncRow): string {
  if (done === 0) return 'time left unknown';
  const seconds = Math.round(((updatedAt - startedAt) / done) * (wanted - done)) / 1000;
  return seconds < 90 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`;
}
