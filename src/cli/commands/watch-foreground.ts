/** `agent watch JOB --foreground`: prints the lines of a job, and follows it here unless an agent does. */
import type { Config } from '../../config/config.ts';
import { withStore } from '../../daemon/own-state.ts';
import type { JobId } from '../../job.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { followRequest, PendingRequest } from '../ask-agent.ts';
import { commandLog } from '../process.ts';
import { withServedState } from '../serve-state.ts';
import { jobStateChanges, searchLines } from '../show/job-text.ts';
import { startOfLastLines, TailedMirrors } from '../show/line-tail.ts';
import { reportOf } from '../show/status-report.ts';
import { progressText } from '../show/status-table.ts';
import { BottomLines, forStderr, pc } from '../show/terminal.ts';
import { followerOf } from '../stored-jobs.ts';
import { untilOver } from '../waiting.ts';

const STATE_MS = 500;

/** Prints the last `lines` of what each file has at the beginning, and all that comes later. */
export async function watchHere(config: Config, request: WatchRequest, lines: number): Promise<void> {
  const { jobId } = request;
  await withStore(config, commandLog(), (store) => store.transaction(() => store.jobs.watch(request, Date.now())));
  await withServedState(config, async (state, signal) => {
    const pending = new PendingRequest(state, followRequest(request));
    const read = <T>(work: (store: Store) => T): T | undefined => {
      const store = state.ifReadable;
      return store && work(store);
    };
    const bottom = new BottomLines(process.stdout);
    let gathered = '';
    const writeLines = () => {
      if (gathered !== '') bottom.write(gathered);
      gathered = '';
    };
    const chosen = { task: request.tasks ?? [], file: request.files };
    const source = { mirror: config.mirror, jobIds: [jobId], ...chosen };
    const mirrors = new TailedMirrors((line) => (gathered += line), source);
    const stored = () => read((store) => store.jobs.get(jobId));
    const polledBefore = stored()?.polledAt ?? null;
    let hasBegun = false;
    /** What was written before is in the mirrors after a poll, or if an agent polls. */
    const begin = (isOver = false) => {
      const { polledAt = null, error = null } = stored() ?? {};
      const isOfAgent = () => read((store) => followerOf(config, store, jobId).by) === 'agent';
      const isPolled = isOver || error !== null || polledAt !== polledBefore || (polledAt !== null && isOfAgent());
      if (!hasBegun && isPolled) mirrors.add((file) => startOfLastLines(file, lines));
      hasBegun ||= isPolled;
    };
    const news = newsOf(config, jobId);
    const stateOf = () => read((store) => store.jobs.get(jobId)?.state ?? 'ended') ?? 'watched';
    try {
      await untilOver({
        signal,
        stateMs: STATE_MS,
        isOver() {
          pending.renew();
          const isOver = stateOf() !== 'watched';
          const change = isOver ? '' : (read(news) ?? '');
          if (change !== '') bottom.clear();
          process.stderr.write(forStderr(change));
          return isOver;
        },
        tick() {
          begin();
          const more = hasBegun && mirrors.tick();
          writeLines();
          const progress = read((store) => progressText(reportOf(config, store, [jobId])));
          if (progress !== undefined) bottom.show([pc.dim(progress)]);
          return more;
        },
      });
    } finally {
      pending.end();
      bottom.clear();
    }
    return () => {
      process.stderr.write(forStderr(read(news) ?? ''));
      begin(true);
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
    const [job] = reportOf(config, store, [jobId]).jobs;
    const state = stateChange(job);
    const found = `${job?.tasks.found} ${job?.tasks.hint}`;
    if (job === undefined || found === shown) return state;
    shown = found;
    return [state, ...searchLines(job).map((line) => `${line}\n`)].join('');
  };
}
