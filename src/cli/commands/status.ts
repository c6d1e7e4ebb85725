/** `agent status`: the followed jobs and their state. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, type FleetConfig, hasFleet } from '../../config/config.ts';
import { notWatched, requireWatched, withSharedStore } from '../../daemon/state.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { countOf } from '../../numbers.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { jsonReport } from '../show/json.ts';
import { reportOf, viewLine, viewReport } from '../show/status-report.ts';
import { detail, overview, type ShownReport } from '../show/status-table.ts';
import { columnsOf } from '../show/terminal.ts';

interface StatusOptions extends ConfigOption {
  readonly json?: boolean;
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
const CLEAR_BELOW = '\u001b[J';

export async function status(jobIds: readonly JobId[], options: StatusOptions): Promise<void> {
  if (options.watch === true && (options.json === true || !process.stdout.isTTY)) {
    throw new JobtailError('usage', '--watch needs a terminal, and excludes --json', {
      hint: 'leave out --json; a program runs the command again',
    });
  }
  const config = await configurationAsOwner(options);
  const wanted = jobIds.length > 0 ? [...new Set(jobIds)] : [options.all === true ? ('all' as const) : undefined];
  if (hasFleet(config)) return await showFleet(config, wanted, options);
  await withSharedStore(config, async (store) => {
    for (const jobId of jobIds) requireWatched(store, jobId);
    await show(() => joined(wanted.map((one) => reportOf(config, store, one))), { config, wanted, options });
  });
}

/** What is shown: all jobs, or some. */
type Wanted = readonly (JobId | 'all' | undefined)[];

function joined<T extends ShownReport>(reports: readonly T[]): T {
  const [first] = reports;
  if (first === undefined) throw new Error('a report is missing');
  return { ...first, jobs: reports.flatMap(({ jobs }) => jobs) };
}

async function showFleet(config: FleetConfig, wanted: Wanted, options: StatusOptions): Promise<void> {
  const { readFleet, fleetReport } = await import('../fleet/client.ts');
  await readFleet(config, async (client) => {
    const report = async () => {
      const reports = [];
      for (const one of wanted) {
        const found = await fleetReport(config, client, one === 'all' ? undefined : one);
        if (one !== 'all' && one !== undefined && found.jobs.length === 0) throw notWatched(one);
        reports.push(found);
      }
      return joined(reports);
    };
    await show(report, { config, wanted, options });
  });
}

interface Shown {
  readonly config: Config;
  readonly wanted: Wanted;
  readonly options: StatusOptions;
}

async function show(
  report: () => ShownReport | Promise<ShownReport>,
  { config, wanted, options: { json, watch } }: Shown,
): Promise<void> {
  const reportWithView = async () => ({ ...(await report()), view: await viewReport(config) });
  const pageOf: PageOf = async () => {
    const { view, ...rest } = await reportWithView();
    const page = wanted[0] === undefined || wanted[0] === 'all' ? overview : detail;
    const render = (maxJobs?: number) => `${page(rest, columnsOf(), maxJobs)}${viewLine(view, rest.agent.running)}`;
    return { jobs: rest.jobs.length, render };
  };
  if (json === true) process.stdout.write(jsonReport(await reportWithView()));
  else if (watch === true) await untilStopped((signal) => watchPage(pageOf, signal));
  else process.stdout.write((await pageOf()).render());
}

interface Page {
  readonly jobs: number;
  readonly render: (maxJobs?: number) => string;
}
type PageOf = () => Promise<Page>;

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

/** Refreshes a page in its place until interrupted; the last one stays. */
async function watchPage(pageOf: PageOf, signal: AbortSignal): Promise<void> {
  const restore = () => void process.stdout.write(FIRST_SCREEN);
  // A second signal ends the process at once.
  process.once('exit', restore);
  process.stdout.write(OTHER_SCREEN);
  try {
    while (!signal.aborted) {
      const lines = fittingLines(await pageOf(), process.stdout.rows || USUAL_ROWS);
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
