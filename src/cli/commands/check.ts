/** `agent check`: errors of the configuration, the connection and the service, with hints. Changes nothing. */
import { type Config, hasFleet } from '../../config/config.ts';
import { SharedState } from '../../daemon/state.ts';
import type { JobId, TaskId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import { requireOwner } from '../agent-socket.ts';
import { Findings } from '../check/findings.ts';
import {
  checkAgent,
  checkConfigFile,
  checkDirectory,
  checkFleet,
  checkNotify,
  checkResultsWay,
  checkView,
} from '../check/machine.ts';
import { checkConnection, checkNamespace, serversOf } from '../check/network.ts';
import { probe } from '../check/probe.ts';
import { serviceSteps } from '../check/service.ts';
import { configurationAsOwner, type JsonOption, ownConfiguration } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { forStderr } from '../show/terminal.ts';

interface CheckOptions extends JsonOption {
  readonly job?: JobId;
  readonly task: readonly TaskId[];
  /** Sends test requests only, and prints unknown responses as JSON. */
  readonly probe?: boolean;
  readonly quiet?: boolean;
}

export async function check(options: CheckOptions): Promise<void> {
  if (options.probe === true) return printProbe(options);
  const { json = false, quiet = false } = options;
  const findings = new Findings((text, mark) => {
    if (quiet && (mark === 'warning' || mark === 'failure')) process.stderr.write(forStderr(text));
    else if (!json) process.stdout.write(text);
  });
  let config: Config | undefined;
  const readConfiguration = async () => {
    // If the state is that of another user, the other questions are still asked.
    config = await configurationAsOwner(options);
    requireOwner(config);
    return checkConfigFile(config);
  };
  await findings.ask([{ name: 'configuration', ask: readConfiguration }]);
  const found = config;
  if (found !== undefined) await untilStopped((signal) => checkAll(findings, found, options, signal));
  process.exitCode ||= findings.exitCode;
  if (json) process.stdout.write(jsonReport({ exitCode: findings.exitCode, findings: findings.all }));
}

async function printProbe(options: CheckOptions): Promise<void> {
  const config = await ownConfiguration(options);
  process.stdout.write(jsonReport(await untilStopped((signal) => probe(config, signal))));
}

async function checkAll(findings: Findings, config: Config, options: CheckOptions, signal: AbortSignal): Promise<void> {
  const store = new SharedState(config).ifReadable;
  const service = serviceSteps({ ...options, config, store, signal });
  const { notify, view } = config;
  try {
    await findings.ask([
      { name: 'agent', ask: () => checkAgent(config) },
      { name: 'mirrors', ask: () => checkDirectory(config, 'mirror') },
      { name: 'state', ask: () => checkDirectory(config, 'state') },
      { name: 'notify', ask: () => (notify.length > 0 ? checkNotify(config, signal) : []) },
      { name: 'view', ask: () => (view === null ? [] : checkView(config)) },
      { name: 'fleet', ask: () => (hasFleet(config) ? checkFleet(config) : []) },
      { name: 'results', ask: () => checkResultsWay(config, store) },
      ...serversOf(config).map((url) => ({ name: 'connection', ask: () => checkConnection(config, url, signal) })),
      { name: 'namespace', needs: 'connection', ask: () => checkNamespace(config, signal) },
      ...service.steps,
    ]);
  } finally {
    await service.close();
    store?.close();
  }
}
