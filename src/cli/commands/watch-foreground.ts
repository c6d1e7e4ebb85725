/** `agent watch JOB --foreground`: follows one job in this process, and shows its lines as they come. */
import { setTimeout as sleep } from 'node:timers/promises';
import pc from 'picocolors';
import { Mirror, mirrorPath } from '../../agent/live/mirror/mirror.ts';
import type { Config } from '../../config/config.ts';
import { warnOfPlainHttp } from '../../config/plain-http.ts';
import { commandLog } from '../../daemon/command-log.ts';
import { buildEngine, type EngineOptions } from '../../daemon/compose.ts';
import { connect } from '../../daemon/connection.ts';
import { openOwnStore } from '../../daemon/state.ts';
import type { WatchOrder } from '../../store/rows.ts';
import { untilStopped } from '../process.ts';
import { BottomLines } from '../show/bottom-lines.ts';
import { alignedNames, LineTail } from '../show/line-tail.ts';
import { asPeopleExpect, reportOf } from '../show/status-report.ts';
import { progressText } from '../show/status-table.ts';

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
      await follow(order, { config, log, ...owned, remote: connection.remote, signal });
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

async function follow(order: WatchOrder, { signal, ...parts }: FollowOptions): Promise<void> {
  const { config, store, transfers, remote } = parts;
  const { agent } = buildEngine({ ...parts, only: order.jobId });
  const bottom = new BottomLines(process.stdout);
  let lines = '';
  const tail = new LineTail((line) => {
    lines += line;
  });
  const writeLines = () => {
    if (lines !== '') bottom.write(lines);
    lines = '';
  };
  try {
    store.transaction(() => store.jobs.watch(order, Date.now()));
    const rows = store.liveFiles.ofJob(order.jobId).sort(asPeopleExpect);
    const names = alignedNames(rows);
    for (const [index, row] of rows.entries()) {
      const file = mirrorPath(config.mirror.directory, order.jobId, row);
      await (await Mirror.open(config.mirror.directory, file)).close();
      tail.add(file, names[index] ?? '');
    }
    agent.start([]);
    while (!signal.aborted && store.jobs.get(order.jobId)?.state === 'watched') {
      tail.look();
      writeLines();
      bottom.show([pc.dim(progressText(reportOf(config, store, order.jobId)))]);
      await sleep(200, undefined, { signal }).catch(() => {});
    }
  } finally {
    bottom.clear();
    await agent.stop();
    await transfers.endAll(remote, signal);
    tail.end();
    writeLines();
  }
}
