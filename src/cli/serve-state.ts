/**
 * Serves the state while a command waits: whichever process holds its lock is the agent for all that commands ask for.
 * The next command takes the lock when it is free, and releases it to an agent that waits for it.
 */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, warnOfPlainHttp } from '../config/config.ts';
import { buildEngine } from '../daemon/compose.ts';
import { connect } from '../daemon/connection.ts';
import { type OwnedStore, openOwnStore } from '../daemon/own-state.ts';
import { SharedState } from '../daemon/state.ts';
import { FileWatch } from '../daemon/watch-files.ts';
import { asJobtailError } from '../errors.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { UnderWay } from '../notify/deliveries.ts';
import { Notifications } from '../notify/notifications.ts';
import { isAgentWaiting, isServed } from '../store/lock.ts';
import { WAKE_FILE } from '../store/store.ts';
import { commandLog, untilStopped } from './process.ts';

/** Interval at which a command checks whether the lock is free, or an agent waits for it. */
const CHECK_MS = 300;
/** For so long, failures to take over from another process are waited out: an agent may start again. */
const MAX_FAILING_MS = 120_000;

/**
 * Runs `work` while this process or another one serves the state; what it returns is called after everything appended is
 * committed. @throws JobtailError also if this process should serve the state and cannot
 */
export function withServedState<T>(
  config: Config,
  work: (state: SharedState, signal: AbortSignal) => Promise<() => T>,
): Promise<T> {
  return untilStopped(async (signal) => {
    const over = new LinkedAbort(signal);
    const state = new SharedState(config);
    const serving = serveWhileFree(config, over.signal);
    const working = work(state, over.signal);
    try {
      // Serving ends before the work only by a failure.
      const end = await Promise.race([working, serving.then(() => working)]);
      over.abort();
      await serving;
      return end();
    } finally {
      over.abort();
      over.release();
      await Promise.allSettled([working, serving]);
      state.close();
    }
  });
}

async function serveWhileFree(config: Config, signal: AbortSignal): Promise<void> {
  const { directory } = config.state;
  let failing: { readonly sinceMs: number } | undefined;
  let wasServed = false;
  while (!signal.aborted) {
    try {
      if (isServed(directory)) wasServed = true;
      else await serve(config, signal);
      failing = undefined;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal.aborted) return;
      if (error.code !== 'locked') {
        failing ??= { sinceMs: performance.now() };
        if (!wasServed || performance.now() - failing.sinceMs >= MAX_FAILING_MS) throw error;
      }
    }
    await sleep(CHECK_MS, undefined, { signal }).catch(() => {});
  }
}

/** Serves until the signal fires, an agent waits for the lock, or the state is replaced. @throws JobtailError locked */
async function serve(config: Config, signal: AbortSignal): Promise<void> {
  const log = commandLog();
  const owned = openOwnStore(config, log, { role: 'command' });
  const { store, transfers } = owned;
  const watched = new FileWatch();
  try {
    warnOfPlainHttp(config, log);
    const { capabilities, directory } = store;
    const { secrets } = transfers;
    const connection = await connect(config, log, { secrets, capabilities, signsInAgain: true });
    const degraded = () => undefined;
    const hasJobService = connection.jobService !== null;
    const underWay = new UnderWay();
    const notifications = new Notifications({ config, store, log, secrets, degraded, hasJobService, underWay });
    const catchUp = () => notifications.catchUp();
    const { agent } = buildEngine({ ...connection, config, store, transfers, log, catchUp, follows: 'asked' });
    const endKeepUp = transfers.keepUp(connection.remote);
    try {
      store.wake();
      watched.watch(new Map([[path.join(directory, WAKE_FILE), () => agent.refresh()]]));
      agent.start(null);
      notifications.start();
      while (!signal.aborted && !isAgentWaiting(directory) && !store.isGone())
        await sleep(CHECK_MS, undefined, { signal }).catch(() => {});
    } finally {
      watched.close();
      await agent.stop();
      await notifications.stop();
      await endKeepUp();
      // Within seconds, as at a stop: a service that hangs must not keep a waiting agent from its state.
      await transfers.endAll(connection.remote, AbortSignal.abort());
      await connection.close();
    }
  } finally {
    owned.close();
  }
}

/** Ends the temporary keys of a state that this command owns for a moment. */
export async function endGrants(config: Config, { store, transfers }: OwnedStore): Promise<void> {
  const connection = await connect(config, commandLog(), { capabilities: store.capabilities });
  await transfers.endAll(connection.remote, new AbortController().signal).finally(() => connection.close());
}
