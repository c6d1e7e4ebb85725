/** `agent check`: errors of the configuration, the connection and the service, with hints. Changes nothing. */
import { type Config, hasFleet } from '../../config/config.ts';
import { SharedState } from '../../daemon/state.ts';
import { viewSettingsOf } from '../../daemon/view-thread.ts';
import type { JobId, TaskId } from '../../job.ts';
import { versionOfProgram } from '../../system/package-file.ts';
import { requireOwner } from '../agent-socket.ts';
import { type Finding, Findings } from '../check/findings.ts';
import {
  checkAgent,
  checkConfigFile,
  checkDirectory,
  checkFleet,
  checkNotify,
  checkResultsWay,
  checkView,
} from '../check/machine.ts';
import { checkNamespace, checkWay } from '../check/network.ts';
import { probe } from '../check/probe.ts';
import { checkService } from '../check/service.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { forStderr } from '../show/colours.ts';
import { jsonReport } from '../show/json.ts';

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
  await findings.step('configuration', async () => {
    config = await configurationAsOwner(options);
    requireOwner(config);
    return checkConfigFile(config);
  });
  const found = config;
  if (found !== undefined) await untilStopped((signal) => checkAll(findings, found, options, signal));
  process.exitCode ||= findings.exitCode;
  if (json) process.stdout.write(jsonReport({ exitCode: findings.exitCode, findings: findings.all }));
}

async function printProbe(options: CheckOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  requireOwner(config);
  process.stdout.write(jsonReport(await untilStopped((signal) => probe(config, signal))));
}

async function checkAll(findings: Findings, config: Config, options: CheckOptions, signal: AbortSignal): Promise<void> {
  const store = new SharedState(config).ifReadable;
  const { mirror, state, notify, view } = config;
  let agentRuns = false;
  const steps: Readonly<Record<string, () => Promise<readonly Finding[]> | readonly Finding[]>> = {
    agent() {
      const seen = checkAgent(config);
      agentRuns = seen.some(({ mark }) => mark === 'ok');
      return seen;
    },
    mirrors: () => checkDirectory(mirror.directory, 'mirror.directory', agentRuns),
    state: () => checkDirectory(state.directory, 'state.directory', agentRuns),
    ...(notify.length > 0 && { notify: () => checkNotify(config, signal) }),
    ...(view !== null && {
      view: () => checkView(config, viewSettingsOf(config, { program: versionOfProgram(), agentPid: null })),
    }),
    ...(hasFleet(config) && { fleet: () => checkFleet(config) }),
    results: () => checkResultsWay(config, store),
  };
  try {
    for (const [name, ask] of Object.entries(steps)) await findings.step(name, ask);
    if (await checkWay(findings, config)) {
      await findings.step('namespace', () => checkNamespace(config, signal));
      await checkService(findings, { ...options, config, store, signal });
    } else findings.skip('sign-in', 'there is no way to the service');
  } finally {
    store?.close();
  }
}
