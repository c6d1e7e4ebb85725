/** `agent run`: the daemon. */
import { asJobtailError } from '../../errors.ts';
import { createLog } from '../../service/log.ts';
import { standardError } from '../../service/log-stream.ts';
import { createNotifier } from '../../service/notify.ts';
import { openOwnStore } from '../compose.ts';
import { type ConfigOption, configurationOf } from '../configuration.ts';
import { Daemon } from '../daemon.ts';
import { stopSignals } from '../stop-signals.ts';

/** Log lines that nobody takes do not keep a process that has stopped. */
const LAST_LINES_MS = 500;

export async function run(options: ConfigOption): Promise<void> {
  const stopping = stopSignals();
  // Until the agent can reload, a hangup is no reason to end.
  const ignore = () => {};
  process.on('SIGHUP', ignore);
  const stream = standardError(process.env);
  const log = createLog({ level: 'info', ...(process.stderr.isTTY ? {} : { stream }) });
  const onProblem = (message: string) => log.warn({ scope: 'systemd' }, message);
  const notifier = createNotifier({ env: process.env, pid: process.pid, onProblem });
  try {
    notifier.send({ STATUS: 'reading the configuration and the state' });
    const config = await configurationOf(options);
    log.level = config.logging.level;
    const owned = openOwnStore(config, log);
    try {
      const logLinesLost = () => stream.lost;
      await new Daemon({ ...owned, config, log, logLinesLost, notifier, stop: stopping.signal }).run();
    } finally {
      owned.close();
    }
  } catch (error) {
    notifier.send({ STATUS: asJobtailError(error).message });
    throw error;
  } finally {
    notifier.close();
    process.off('SIGHUP', ignore);
    stopping.dispose();
    setTimeout(() => process.exit(), LAST_LINES_MS).unref();
  }
}
