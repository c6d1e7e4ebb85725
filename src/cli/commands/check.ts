/** `agent check`: errors of the configuration, the connection and the service, with hints. Changes nothing. */
import { type Config, hasFleet } from '../../config/config.ts';
import { SharedState } from '../../daemon/state.ts';
import { viewSettingsOf } from '../../daemon/view-thread.ts';
import type { JobId, TaskId } from '../../job.ts';
import { versionOfProgram } from '../../system/package-file.ts';
import { Findings } from '../check/findings.ts';
import { checkAgent, checkConfigFile, checkDirectory, checkNotify, checkView } from '../check/machine.ts';
import { checkNamespace, checkWay } from '../check/network.ts';
import { probe } from '../check/probe.ts';
import { checkResultsWay } from '../check/results-way.ts';
import { checkService } from '../check/service.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { untilStopped } from '../process.ts';
import { jsonReport } from '../show/json.ts';

interface CheckOptions extends JsonOption {
  readonly job?: JobId;
  readonly task: readonly TaskId[];
  /** Sends test requests only, and prints unknown responses as JSON. */
  readonly probe?: boolean;
}

export async function check(options: CheckOptions): Promise<void> {
  if (options.probe === true) return printProbe(options);
  const findings = new Findings((text) => void (options.json === true || process.stdout.write(text)));
  let config: Config | undefined;
  await findings.step('configuration', async () => {
    config = await configurationAsOwner(options);
    return checkConfigFile(config);
  });
  const found = config;
  if (found !== undefined) await untilStopped((signal) => checkAll(findings, found, options, signal));
  process.exitCode ||= findings.exitCode;
  if (options.json === true) process.stdout.write(jsonReport({ exitCode: findings.exitCode, findings: findings.all }));
}

async function printProbe(options: CheckOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const job = options.job === undefined ? undefined : { jobId: options.job, taskIds: options.task };
  await untilStopped(async (signal) => {
    process.stdout.write(jsonReport(await probe(config, signal, job)));
  });
}

async function checkAll(
  findings: Findings,
  config: Config,
  { job, task }: CheckOptions,
  signal: AbortSignal,
): Promise<void> {
  const store = new SharedState(config).ifReadable;
  try {
    let agentRuns = false;
    await findings.step('agent', () => {
      const seen = checkAgent(config);
      agentRuns = seen.some(({ mark }) => mark === 'ok');
      return seen;
    });
    await findings.step('mirrors', () => checkDirectory(config.mirror.directory, 'mirror.directory', agentRuns));
    await findings.step('state', () => checkDirectory(config.state.directory, 'state.directory', agentRuns));
    if (config.notify.length > 0) await findings.step('notify', () => checkNotify(config, signal));
    if (config.view !== null) {
      const settings = viewSettingsOf(config, { program: versionOfProgram(), agentPid: null });
      await findings.step('view', () => checkView(config, settings));
    }
    if (hasFleet(config))
      await findings.step('fleet', async () => (await import('../check/fleet.ts')).checkFleet(config));
    await findings.step('results', () => checkResultsWay(config, store));
    if (await checkWay(findings, config)) {
      await findings.step('namespace', () => checkNamespace(config, signal));
      await checkService(findings, { config, jobId: job, tasks: task, store, signal });
    } else findings.skip('sign-in', 'there is no way to the service');
  } finally {
    store?.close();
  }
}
