/** `agent watch JOB --foreground`: prints the lines of a job, and follows it here unless an agent does. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { withStore } from '../../daemon/own-state.ts';
import type { JobId } from '../../job.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { PendingRequest } from '../ask-agent.ts';
import { followerOf } from '../follower.ts';
import { commandLog } from '../process.ts';
import { withServedState } from '../serve-state.ts';
import { forStderr, pc } from '../show/colours.ts';
import { jobStateChanges, searchLines } from '../show/job-text.ts';
import { TailedMirrors } from '../show/line-tail.ts';
import { reportOf } from '../show/status-report.ts';
import { progressText } from '../show/status-table.ts';
import { BottomLines } from '../show/terminal.ts';

const TICK_MS = 200;
/** Interval for requesting states. */
const TICKS_A_SLOW_TICK = 5;

export async function watchHere(config: Config, request: WatchRequest): Promise<void> {
  const { jobId } = request;
  const watch = (store: Store) => store.jobs.watch(request, Date.now());
  await withStore(config, commandLog(), (store) => store.transaction(() => watch(store)));
  await withServedState(config, async (state, signal) => {
    // In a state that was replaced, it is watched again.
    const prepare = (store: Store) => (store.jobs.get(jobId) === undefined ? watch(store) : undefined);
    const pending = new PendingRequest(state, { kind: 'follow', jobId, prepare });
    const read = <T>(work: (store: Store) => T): T | undefined => {
      const store = state.ifReadable;
      return store && work(store);
    };
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
    const news = newsOf(config, jobId);
    const stateOf = () => read((store) => store.jobs.get(jobId)?.state ?? 'ended') ?? 'watched';
    try {
      for (let ticks = 0; !signal.aborted; ticks++) {
        pending.renew();
        if (stateOf() !== 'watched') break;
        if (ticks % TICKS_A_SLOW_TICK === 0) {
          const change = read(news) ?? '';
          if (change !== '') bottom.clear();
          process.stderr.write(forStderr(change));
        }
        mirrors.tick();
        writeLines();
        const progress = read((store) => progressText(reportOf(config, store, jobId)));
        if (progress !== undefined) bottom.show([pc.dim(progress)]);
        await sleep(TICK_MS, undefined, { signal }).catch(() => {});
      }
    } finally {
      pending.end();
      bottom.clear();
    }
    return () => {
      process.stderr.write(forStderr(read(news) ?? ''));
      mirrors.end();
      writeLines();
      const state = stateOf();
      const isLeft = state === 'watched' && read((store) => followerOf(config, store, jobId).by) === 'nobody';
      const more = isLeft ? `; agent watch ${jobId} --foreground goes on` : '';
      process.stderr.write(`job ${jobId} is ${state}${more}\n`);
    };
  });
}

/** Returns lines about a job that are new: its state, and how many tasks are found. */
function newsOf(config: Config, jobId: JobId): (store: Store) => string {
  const stateChange = jobStateChanges();
  let shown = '';
  return (store) => {
    const state = stateChange(store.jobInformation.get(jobId));
    const [job] = reportOf(config, store, jobId).jobs;
    const found = `${job?.tasks.found} ${job?.tasks.hint}`;
    if (job === undefined || found === shown) return state;
    shown = found;
    return [state, ...searchLines(job).map((line) => `${line}\n`)].join('');
  };
}
