/** `agent watch JOB`: registers a job, and prints where its mirrors are. */
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mirror, mirrorPath } from '../../agent/live/mirror.ts';
import { resultsDirectory } from '../../agent/results/results.ts';
import type { Config } from '../../config/config.ts';
import { JobtailError } from '../../errors.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../job.ts';
import { createLog } from '../../service/log.ts';
import { lockHolder } from '../../store/lock.ts';
import type { WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { BottomLine } from '../bottom-line.ts';
import { buildEngine, connect, makeDirectories, openOwnStore, openSharedStore } from '../compose.ts';
import { type ConfigOption, configurationOf } from '../configuration.ts';
import { LineTail } from '../line-tail.ts';
import { reportOf } from '../status-report.ts';
import { progressText } from '../status-view.ts';
import { stopSignals } from '../stop-signals.ts';

export interface WatchOptions extends ConfigOption {
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
  readonly results: boolean;
  readonly foreground?: boolean;
}

/** How long the running agent is given to make the mirrors. */
const PICKED_UP_MS = 5_000;

export async function watch(jobId: JobId, options: WatchOptions): Promise<void> {
  const config = await configurationOf(options);
  const order: WatchOrder = {
    jobId,
    tasks: [...new Set(options.task)],
    files: options.file.length > 0 ? [...new Set(options.file)] : LIVE_FILE_NAMES,
    results: options.results && config.results.enabled,
    settleAfterMs: null,
    source: 'command',
  };
  if (order.tasks.length === 0 && !order.results) {
    throw new JobtailError('usage', `nothing would be followed of job ${jobId}`, {
      hint: 'name a task (--task ID), or leave out --no-results',
    });
  }
  makeDirectories(config);
  const running = lockHolder(config.state.directory) !== undefined;
  if (options.foreground === true) await followHere(config, order);
  else if (running) await registerWithAgent(config, order);
  else await registerAlone(config, order);
}

async function registerWithAgent(config: Config, order: WatchOrder): Promise<void> {
  const store = openSharedStore(config);
  try {
    store.transaction(() => store.jobs.watch(order, Date.now()));
    store.wake();
    const paths = pathsOf(config, store, order);
    for (let waitedMs = 0; waitedMs < PICKED_UP_MS && !paths.every((file) => fs.existsSync(file)); waitedMs += 50) {
      await sleep(50);
    }
    print(paths, config, order, 'the running agent follows it');
  } finally {
    store.close();
  }
}

async function registerAlone(config: Config, order: WatchOrder): Promise<void> {
  const owned = openOwnStore(config, createLog({ level: 'warn' }));
  try {
    const { store } = owned;
    store.transaction(() => store.jobs.watch(order, Date.now()));
    const paths = pathsOf(config, store, order);
    for (const file of paths) await (await Mirror.open(config.mirror.directory, file)).close();
    print(paths, config, order, 'no agent is running: it is followed once one is started (agent run)');
  } finally {
    owned.close();
  }
}

/** Follows one job in this process until it is stopped; its lines appear as they come. */
async function followHere(config: Config, order: WatchOrder): Promise<void> {
  const log = createLog({ level: 'warn' });
  const owned = openOwnStore(config, log);
  const stopping = stopSignals();
  const connection = await connect(config, log);
  const { store, transfers } = owned;
  const { remote } = connection;
  const { agent } = buildEngine({ config, store, transfers, remote, log, only: order.jobId });
  const bottom = new BottomLine(process.stdout);
  const tail = new LineTail((line) => bottom.write(line));
  try {
    store.transaction(() => store.jobs.watch(order, Date.now()));
    for (const row of store.liveFiles.ofJob(order.jobId)) {
      const file = mirrorPath(config.mirror.directory, order.jobId, row);
      await (await Mirror.open(config.mirror.directory, file)).close();
      tail.add(file, `${row.taskId} ${row.file}`);
    }
    agent.start([]);
    while (!stopping.signal.aborted && store.jobs.get(order.jobId)?.state === 'watched') {
      tail.look();
      bottom.show(progressText(reportOf(config, store, order.jobId)));
      await sleep(200, undefined, { signal: stopping.signal }).catch(() => {});
    }
  } finally {
    bottom.clear();
    await agent.stop();
    await transfers.endAll(remote, stopping.signal);
    tail.end();
    await connection.close();
    const state = store.jobs.get(order.jobId)?.state ?? 'ended';
    owned.close();
    stopping.dispose();
    const more = state === 'watched' ? `; agent watch ${order.jobId} --foreground goes on` : '';
    process.stderr.write(`job ${order.jobId} is ${state}${more}\n`);
  }
}

/** Every mirror of the job, also those of earlier orders. */
function pathsOf(config: Config, store: Store, order: WatchOrder): string[] {
  return store.liveFiles.ofJob(order.jobId).map((row) => mirrorPath(config.mirror.directory, order.jobId, row));
}

/** Paths on the standard output, for programs; the rest on the standard error, for people. */
function print(paths: readonly string[], config: Config, order: WatchOrder, note: string): void {
  for (const file of paths) process.stdout.write(`${process.stdout.isTTY ? shellWord(file) : file}\n`);
  process.stderr.write(`job ${order.jobId} is watched; ${note}\n`);
  if (order.results) process.stderr.write(`results go to ${resultsDirectory(config.mirror.directory, order.jobId)}/\n`);
  if (paths.length === 0) {
    process.stderr.write(
      'no live file is followed: the interface does not name the tasks of a job, so say --task ID\n',
    );
  }
}

/** A path as a shell takes it, ready to be pasted behind `tail -F`. */
const shellWord = (file: string) => (/^[\w./,:@%+=-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`);
