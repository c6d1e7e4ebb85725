/** `agent watch JOB`: registers a job, and prints where its mirrors are. */
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Mirror, mirrorPath } from '../../agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../agent/results/results.ts';
import type { Config } from '../../config/config.ts';
import { commandLog } from '../../daemon/command-log.ts';
import { makeDirectories, openSharedStore, openUnlessAgentRuns } from '../../daemon/state.ts';
import { type JobId, LIVE_FILE_NAMES, type LiveFileName, type TaskId } from '../../job.ts';
import type { WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { asPeopleExpect } from '../show/status-report.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export interface WatchOptions extends ConfigOption {
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
  readonly results: boolean;
  readonly foreground?: boolean;
}

/** How long the running agent is given to make the mirrors. */
const PICKED_UP_MS = 5_000;
const LOOK_MS = 50;

export async function watch(jobId: JobId, options: WatchOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const order: WatchOrder = {
    jobId,
    tasks: options.task.length > 0 ? [...new Set(options.task)] : null,
    files: options.file.length > 0 ? [...new Set(options.file)] : LIVE_FILE_NAMES,
    results: options.results && config.results.enabled,
    settleAfterMs: null,
    source: 'command',
  };
  makeDirectories(config);
  if (options.foreground === true) return (await import('./watch-foreground.ts')).followHere(config, order);
  const owned = openUnlessAgentRuns(config, commandLog());
  const store = owned?.store ?? openSharedStore(config);
  try {
    store.transaction(() => store.jobs.watch(order, Date.now()));
    const paths = pathsOf(config, store, order);
    if (owned === undefined) {
      store.wake();
      await pickedUp(paths);
      print(paths, config, order, 'the running agent follows it');
    } else {
      for (const file of paths) await (await Mirror.open(config.mirror.directory, file)).close();
      print(paths, config, order, 'no agent is running: it is followed once one is started (agent run)');
    }
  } finally {
    (owned ?? store).close();
  }
}

/** The running agent has made the mirrors, or takes long. */
async function pickedUp(paths: readonly string[]): Promise<void> {
  for (let waitedMs = 0; waitedMs < PICKED_UP_MS; waitedMs += LOOK_MS) {
    if (paths.every((file) => fs.existsSync(file))) return;
    await sleep(LOOK_MS);
  }
}

/** The mirrors that were asked for now; without a task, those of earlier orders. */
function pathsOf(config: Config, store: Store, order: WatchOrder): string[] {
  const { tasks, files } = order;
  const rows = store.liveFiles
    .ofJob(order.jobId)
    .filter(({ taskId, file }) => tasks === null || (tasks.includes(taskId) && files.includes(file)))
    .sort(asPeopleExpect);
  return rows.map((row) => mirrorPath(config.mirror.directory, order.jobId, row));
}

/** Paths on the standard output, for programs; the rest on the standard error, for people. */
function print(paths: readonly string[], config: Config, order: WatchOrder, note: string): void {
  for (const file of paths) process.stdout.write(`${process.stdout.isTTY ? shellWord(file) : file}\n`);
  process.stderr.write(`job ${order.jobId} is watched; ${note}\n`);
  if (order.results) process.stderr.write(`results go to ${resultsDirectory(config.mirror.directory, order.jobId)}/\n`);
  if (paths.length === 0) {
    process.stderr.write(`no task of it is known yet: they are looked for (agent status ${order.jobId})\n`);
  } else process.stderr.write(`see them grow: agent tail ${order.jobId} -f, or tail -F with a path from above\n`);
}

/** A path as a shell takes it, ready to be pasted behind `tail -F`. */
const shellWord = (file: string) => (/^[\w./,:@%+=-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`);
