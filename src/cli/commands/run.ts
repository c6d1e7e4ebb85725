/** `agent run`: the daemon. */
import { setTimeout as sleep } from 'node:timers/promises';
import tty from 'node:tty';
import type { Config } from '../../config/config.ts';
import { Daemon, type ProcessOptions, StateGone } from '../../daemon/daemon.ts';
import { logFor, standardError } from '../../daemon/log.ts';
import { openAsAgent } from '../../daemon/own-state.ts';
import { createNotifier } from '../../daemon/systemd.ts';
import { asJobtailError } from '../../errors.ts';
import { Secrets } from '../../redact.ts';
import { versionOfProgram } from '../../system/package-file.ts';
import { type ConfigOption, configurationAsOwner, configurationOf } from '../configuration.ts';
import { untilStopped } from '../process.ts';

/** Unread log lines do not keep a stopped process alive longer. */
const LAST_LINES_MS = 500;

/** Interval of checks while the disk is full at the start; well within a watchdog of systemd. */
const ROOM_MS = 2_000;

export interface RunOptions extends ConfigOption {
  readonly drain?: boolean;
  /** In place of `logging.level`. */
  readonly logLevel?: Config['logging']['level'];
}

export async function run(options: RunOptions): Promise<void> {
  if (options.drain === true) {
    const { drain } = await import('../fleet/commands.ts');
    return await drain(await configurationAsOwner(options));
  }
  return await untilStopped((stop) => runUntil(stop, options), { isServer: true });
}

async function runUntil(stop: AbortSignal, options: RunOptions): Promise<void> {
  // SIGHUP is a reload, unless it reports that the terminal was closed.
  const isOnTerminal = tty.isatty(2);
  const hungUp = () => {
    if (isOnTerminal && !tty.isatty(2)) process.kill(process.pid, 'SIGTERM');
  };
  process.on('SIGHUP', hungUp);
  const stream = standardError(process.env);
  const secrets = new Secrets();
  const log = await logFor({ level: 'info', secrets, stream });
  const onProblem = (message: string) => log.warn({ scope: 'systemd', err: message }, 'systemd not notified');
  const notifier = createNotifier({ env: process.env, pid: process.pid, onProblem });
  try {
    notifier.send({ STATUS: 'reading the configuration and the state' });
    const config = await configurationOf(options);
    const { logLevel } = options;
    log.level = logLevel ?? config.logging.level;
    const logLinesLost = () => stream.lost;
    const version = versionOfProgram();
    process.chdir('/');
    await followUntilStopped({ version, logLevel, config, log, secrets, logLinesLost, notifier, stop });
  } catch (error) {
    notifier.send({ STATUS: asJobtailError(error).message });
    throw error;
  } finally {
    notifier.close();
    process.off('SIGHUP', hungUp);
    setTimeout(() => process.exit(), LAST_LINES_MS).unref();
  }
}

/** Opens the state again if it was removed. Waits for space if the disk is full at the start. */
async function followUntilStopped(options: ProcessOptions): Promise<void> {
  const { log, notifier, stop } = options;
  let { config } = options;
  let isLogged = false;
  while (!stop.aborted) {
    try {
      const owned = await openAsAgent(config, log, options);
      if (owned === undefined) return;
      const daemon = new Daemon({ ...owned, ...options, config, onReady: () => (isLogged = false) });
      return await daemon.run().finally(() => owned.close());
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      if (thrown instanceof StateGone) {
        ({ config } = thrown);
        log.error({ scope: 'the state', code, err: message, hint }, 'state directory replaced, creating it again');
        continue;
      }
      if (code !== 'disk-full') throw thrown;
      log[isLogged ? 'debug' : 'error']({ scope: 'the state', code, err: message, hint }, 'waiting for disk space');
      isLogged = true;
      // Not ready, but systemd must wait.
      notifier.send({
        EXTEND_TIMEOUT_USEC: String(ROOM_MS * 10_000),
        WATCHDOG: '1',
        STATUS: `waiting for disk space: ${message}`,
      });
      await sleep(ROOM_MS, undefined, { signal: stop }).catch(() => {});
    }
  }
}
