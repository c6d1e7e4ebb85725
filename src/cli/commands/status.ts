/** `agent status`: the followed jobs and their state. */
import { setTimeout as sleep } from 'node:timers/promises';
import { notWatched } from '../../daemon/state.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import { countOf } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { withJobs } from '../followed-jobs.ts';
import { untilStopped } from '../process.ts';
import { isDiskHanging } from '../show/disks.ts';
import { detail, overview } from '../show/status-table.ts';
import { CLEAR_BELOW, columnsOf } from '../show/terminal.ts';

interface StatusOptions extends JsonOption {
  readonly watch?: boolean;
  readonly all?: boolean;
}

const REFRESH_MS = 1_000;
/** Of a terminal that does not report its size. */
const USUAL_ROWS = 24;
const OTHER_SCREEN = '\u001b[?1049h\u001b[?25l';
const FIRST_SCREEN = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_END_OF_LINE = '\u001b[K';

export async function status(jobIds: readonly JobId[], options: StatusOptions): Promise<void> {
  if (options.watch === true && (options.json === true || !process.stdout.isTTY)) {
    throw new JobtailError('usage', '--watch needs a terminal, and excludes --json', {
      hint: 'leave out --json; a program runs the command again',
    });
  }
  const config = await configurationAsOwner(options);
  const named = [...new Set(jobIds)];
  await withJobs(config, async (jobs) => {
    const report = async () => {
      const found = await jobs.report(named.length > 0 ? named : options.all === true ? 'all' : undefined);
      const missing = named.find((jobId) => !found.jobs.some((job) => job.jobId === jobId));
      if (missing !== undefined) throw notWatched(missing);
      return found;
    };
    const pageOf = async (): Promise<Page> => {
      const shown = await report();
      const page = jobIds.length === 0 ? overview : detail;
      return { jobs: shown.jobs.length, render: (maxJobs) => page(shown, columnsOf(), maxJobs) };
    };
    if (options.json === true) process.stdout.write(jsonReport(await report()));
    else if (options.watch === true) await untilStopped((signal) => watchPage(pageOf, signal));
    else process.stdout.write((await pageOf()).render());
  });
  // Node.js would wait for it.
  if (isDiskHanging()) process.exit();
}

interface Page {
  readonly jobs: number;
  readonly render: (maxJobs?: number) => string;
}

/** The lines for `rows` rows of a screen; the last line counts the jobs that do not fit. */
export function fittingLines({ jobs, render }: Page, rows: number): string[] {
  const fitting = Math.max(0, rows - 1);
  const linesOf = (maxJobs: number) => render(maxJobs).trimEnd().split('\n');
  // A job has at least one line.
  let shown = Math.min(jobs, Math.max(1, fitting));
  let lines = linesOf(shown);
  for (; shown > 1 && lines.length > fitting; shown -= 1) lines = linesOf(shown - 1);
  const cut = lines.length - fitting;
  const more = [
    ...(jobs > shown ? [`${countOf(jobs - shown, 'job')} more; `] : []),
    ...(cut > 0 ? [`${countOf(cut, 'line')} more; `] : []),
  ];
  return [...lines.slice(0, fitting), `(${more.join('')}every second; Ctrl-C ends)`];
}

/** While an agent starts again, or a database is away, the next page may have the jobs again. @throws all else */
function pageWithout(thrown: unknown): Page {
  const { code, message } = asJobtailError(thrown);
  if (code !== 'store' && code !== 'fleet') throw thrown;
  return { jobs: 0, render: () => `${printable(message)}\n` };
}

/** Refreshes a page in its place until interrupted; the last one stays. */
async function watchPage(pageOf: () => Promise<Page>, signal: AbortSignal): Promise<void> {
  const restore = () => void process.stdout.write(FIRST_SCREEN);
  // A second signal ends the process at once.
  process.once('exit', restore);
  process.stdout.write(OTHER_SCREEN);
  try {
    let isFirst = true;
    while (!signal.aborted) {
      const page = isFirst ? await pageOf() : await pageOf().catch(pageWithout);
      isFirst = false;
      const lines = fittingLines(page, process.stdout.rows || USUAL_ROWS);
      const drawn = lines.map((line) => `${line}${CLEAR_TO_END_OF_LINE}`).join('\r\n');
      process.stdout.write(`${HOME}${drawn}${CLEAR_BELOW}`);
      await sleep(REFRESH_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    process.off('exit', restore);
    restore();
  }
  process.stdout.write((await pageOf()).render());
}
