/** `agent watch JOB --foreground`: follows one job in this process, and shows its lines as they come. */
import { setTimeout as sleep } from 'node:timers/promises';
import pc from 'picocolors';
import { Mirror, mirrorPath } from '../../agent/live/mirror/mirror.ts';
import { type Config, warnOfPlainHttp } from '../../config/config.ts';
import { buildEngine, type EngineOptions } from '../../daemon/compose.ts';
import { connect } from '../../daemon/connection.ts';
import { openOwnStore } from '../../daemon/state.ts';
import { keyText } from '../../job.ts';
import { byTaskAndFile } from '../../store/live-files.ts';
import type { WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { commandLog, untilStopped } from '../process.ts';
import { alignedNames, LineTail } from '../show/line-tail.ts';
import { reportOf } from '../show/status-report.ts';
import { progressText } from '../show/status-table.ts';
import { BottomLines } from '../show/terminal.ts';
import { JobStateChanges, searchLines } from '../show/told-text.ts';

/** Until the job is settled or ended, or it is stopped. */
export function followHere(config: Config, order: WatchOrder): Promise<void> {
  return untilStopped((signal) => followUntil(signal, config, order));
}

async function followUntil(signal: AbortSignal, config: Config, order: WatchOrder): Promise<void> {
  const log = commandLog();
  warnOfPlainHttp(config, log);
  const owned = openOwnStore(config, log);
  try {
    const connection = await connect(config, log, { secrets: owned.transfers.secrets, habits: owned.store.habits });
    try {
      await follow(order, { config, log, ...owned, ...connection, signal });
    } finally {
      await connection.close();
    }
    const state = owned.store.jobs.get(order.jobId)?.state ?? 'ended';
    const more = state === 'watched' ? `; agent watch ${order.jobId} --foreground goes on` : '';
    process.stderr.write(`job ${order.jobId} is ${state}${more}\n`);
  } finally {
    owned.close();
  }
}

interface FollowOptions extends Omit<EngineOptions, 'only'> {
  readonly signal: AbortSignal;
}

const LOOK_MS = 200;
/** Interval for finding tasks and requesting states. */
const LOOKS_A_SLOW_LOOK = 5;

async function follow(order: WatchOrder, { signal, ...parts }: FollowOptions): Promise<void> {
  const { config, store, transfers, remote } = parts;
  const { jobId } = order;
  const { agent } = buildEngine({ ...parts, only: jobId });
  const bottom = new BottomLines(process.stdout);
  let lines = '';
  const tail = new LineTail((line) => {
    lines += line;
  });
  const writeLines = () => {
    if (lines !== '') bottom.write(lines);
    lines = '';
  };
  const files = new FollowedFiles(config, store, tail);
  const news = new News(config, store, order);
  try {
    store.transaction(() => store.jobs.watch(order, Date.now()));
    await files.add(order);
    agent.start([]);
    for (let looks = 0; !signal.aborted && store.jobs.get(jobId)?.state === 'watched'; looks++) {
      if (looks % LOOKS_A_SLOW_LOOK === 0) {
        await files.add(order);
        const said = news.look();
        if (said !== '') bottom.clear();
        process.stderr.write(said);
      }
      tail.look();
      writeLines();
      bottom.show([pc.dim(progressText(reportOf(config, store, jobId)))]);
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    bottom.clear();
    await agent.stop();
    await transfers.endAll(remote, signal);
    process.stderr.write(news.look());
    tail.end();
    writeLines();
  }
}

/** The mirrors whose lines are shown: those of tasks that are found later, too. */
class FollowedFiles {
  readonly #config: Config;
  readonly #store: Store;
  readonly #tail: LineTail;
  readonly #added = new Set<string>();

  constructor(config: Config, store: Store, tail: LineTail) {
    this.#config = config;
    this.#store = store;
    this.#tail = tail;
  }

  async add({ jobId }: WatchOrder): Promise<void> {
    const { directory } = this.#config.mirror;
    const rows = this.#store.liveFiles.ofJob(jobId).filter((row) => !this.#added.has(keyText(row)));
    const names = alignedNames(rows.sort(byTaskAndFile));
    for (const [index, row] of rows.entries()) {
      const file = mirrorPath(directory, jobId, row);
      await (await Mirror.open(directory, file)).close();
      this.#tail.add(file, names[index] ?? '');
      this.#added.add(keyText(row));
    }
  }
}

/** Lines about the job itself: its state, and how its tasks are found. */
class News {
  readonly #config: Config;
  readonly #store: Store;
  readonly #order: WatchOrder;
  readonly #states = new JobStateChanges();
  #tasks = '';

  constructor(config: Config, store: Store, order: WatchOrder) {
    this.#config = config;
    this.#store = store;
    this.#order = order;
  }

  look(): string {
    const { jobId } = this.#order;
    const state = this.#states.look(this.#store.jobInformation.get(jobId));
    const [job] = reportOf(this.#config, this.#store, jobId).jobs;
    const { found, hint } = job?.tasks ?? {};
    const key = `${found} ${hint}`;
    if (job === undefined || key === this.#tasks) return state;
    this.#tasks = key;
    return `${state}${searchLines(job)
      .map((line) => `${line}\n`)
      .join('')}`;
  }
}
