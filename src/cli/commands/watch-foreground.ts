/** `agent watch JOB --foreground`: follows a job in this process, and prints its lines. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, warnOfPlainHttp } from '../../config/config.ts';
import type { JobId } from '../../job.ts';
import { Notifications } from '../../notify/notifications.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { withEngine, withOwnState } from '../own-engine.ts';
import { commandLog, untilStopped } from '../process.ts';
import { forStderr, pc } from '../show/colours.ts';
import { jobStateChanges, searchLines } from '../show/job-text.ts';
import { TailedMirrors } from '../show/line-tail.ts';
import { reportOf } from '../show/status-report.ts';
import { progressText } from '../show/status-table.ts';
import { BottomLines } from '../show/terminal.ts';

const TICK_MS = 200;
/** Interval for requesting states. */
const TICKS_A_SLOW_TICK = 5;

export function watchHere(config: Config, request: WatchRequest): Promise<void> {
  const { jobId } = request;
  return followHere(config, { jobIds: [jobId], requests: () => [request] }, async (store, signal) => {
    const bottom = new BottomLines(process.stdout);
    let lines = '';
    const writeLines = () => {
      if (lines !== '') bottom.write(lines);
      lines = '';
    };
    const gather = (line: string) => {
      lines += line;
    };
    const mirrors = new TailedMirrors(gather, { mirror: config.mirror, jobIds: [jobId] });
    const news = newsOf(config, store, jobId);
    for (let ticks = 0; !signal.aborted && store.jobs.get(jobId)?.state === 'watched'; ticks++) {
      if (ticks % TICKS_A_SLOW_TICK === 0) {
        const change = news();
        if (change !== '') bottom.clear();
        process.stderr.write(forStderr(change));
      }
      mirrors.tick();
      writeLines();
      bottom.show([pc.dim(progressText(reportOf(config, store, jobId)))]);
      await sleep(TICK_MS, undefined, { signal }).catch(() => {});
    }
    bottom.clear();
    return () => {
      process.stderr.write(forStderr(news()));
      mirrors.end();
      writeLines();
      const state = store.jobs.get(jobId)?.state ?? 'ended';
      const more = state === 'watched' ? `; agent watch ${jobId} --foreground goes on` : '';
      process.stderr.write(`job ${jobId} is ${state}${more}\n`);
    };
  });
}

interface JobsHere {
  readonly jobIds: readonly JobId[];
  /** Requests to register first; other watched jobs are not changed. */
  readonly requests: (store: Store) => readonly WatchRequest[];
}

/** Follows jobs here while `work` runs; what it returns is called after the last bytes are appended. */
export function followHere<T>(
  config: Config,
  { jobIds, requests }: JobsHere,
  work: (store: Store, signal: AbortSignal) => Promise<() => T>,
): Promise<T> {
  return untilStopped(async (signal) => {
    const log = commandLog();
    warnOfPlainHttp(config, log);
    return await withOwnState(config, async (owned) => {
      const { store } = owned;
      const options = { config, owned, only: new Set(jobIds), signsInAgain: true, signal };
      const end = await withEngine(options, async ({ agent }) => {
        const notifications = new Notifications({ config, store, log });
        try {
          store.transaction(() => {
            for (const request of requests(store)) store.jobs.watch(request, Date.now());
          });
          agent.start([]);
          notifications.start();
          return await work(store, signal);
        } finally {
          await agent.stop();
          await notifications.stop();
        }
      });
      return end();
    });
  });
}

/** Returns lines about a job that are new: its state, and how many tasks are found. */
function newsOf(config: Config, store: Store, jobId: JobId): () => string {
  const stateChange = jobStateChanges();
  let shown = '';
  return () => {
    const state = stateChange(store.jobInformation.get(jobId));
    const [job] = reportOf(config, store, jobId).jobs;
    const found = `${job?.tasks.found} ${job?.tasks.hint}`;
    if (job === undefined || found === shown) return state;
    shown = found;
    return [state, ...searchLines(job).map((line) => `${line}\n`)].join('');
  };
}
