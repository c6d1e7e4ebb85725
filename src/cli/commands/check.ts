/** `agent check`: what is wrong between the configuration and the service, and how to mend it. Changes nothing. */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import { connect } from '../../daemon/compose.ts';
import { commandLog } from '../../daemon/log.ts';
import { openSharedStore } from '../../daemon/state.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../job.ts';
import type { Store } from '../../store/store.ts';
import { Findings } from '../check/findings.ts';
import { checkAgent, checkConfigFile, checkDirectory } from '../check/machine.ts';
import { checkClock, checkName, checkNamespace, checkTcp, checkTls, placesOf } from '../check/network.ts';
import { OverheardClient } from '../check/overheard-client.ts';
import { checkListing, checkLiveFiles, checkSignIn, habitsOf, type KnownFile } from '../check/service.ts';
import { checkShares } from '../check/shares.ts';
import { stopSignals } from '../stop-signals.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export interface CheckOptions extends ConfigOption {
  readonly job?: JobId;
  readonly task: readonly TaskId[];
}

export async function check(options: CheckOptions): Promise<void> {
  const findings = new Findings((text) => process.stdout.write(text));
  const stopping = stopSignals();
  try {
    await checkAll(findings, options, stopping.signal);
  } finally {
    stopping.dispose();
  }
  process.exitCode = findings.exitCode;
}

async function checkAll(findings: Findings, options: CheckOptions, signal: AbortSignal): Promise<void> {
  let config: Config | undefined;
  await findings.step('configuration', async () => {
    config = await configurationAsOwner(options);
    return checkConfigFile(config);
  });
  if (config === undefined) return;
  const found = config;
  let agentRuns = false;
  await findings.step('agent', () => {
    const seen = checkAgent(found);
    agentRuns = seen.some(({ mark }) => mark === 'ok');
    return seen;
  });
  await findings.step('mirrors', () => checkDirectory(found.mirror.directory, 'mirror.directory', agentRuns));
  await findings.step('state', () => checkDirectory(found.state.directory, 'state.directory', agentRuns));
  if (found.results.transfer !== 'soap') {
    await findings.step('shares', async () => {
      const store = storeIfReadable(found);
      try {
        return await checkShares(found, store);
      } finally {
        store?.close();
      }
    });
  }
  if (await checkWay(findings, found)) {
    await findings.step('namespace', () => checkNamespace(found, signal));
    await checkService(findings, found, { ...options, signal });
  } else findings.skip('sign-in', 'there is no way to the service');
}

async function checkWay(findings: Findings, config: Config): Promise<boolean> {
  let isOpen = true;
  for (const place of placesOf(config)) {
    isOpen =
      (await findings.step('name', () => checkName(place))) &&
      (await findings.step('TCP', () => checkTcp(place))) &&
      (await findings.step('TLS', () => checkTls(config, place))) &&
      (await findings.step('clock', () => checkClock(config, place))) &&
      isOpen;
  }
  return isOpen;
}

interface ServiceOptions extends Pick<CheckOptions, 'job' | 'task'> {
  readonly signal: AbortSignal;
}

async function checkService(findings: Findings, config: Config, options: ServiceOptions): Promise<void> {
  // Long texts go to a directory of its own: the one of the agent may be missing, or belong to somebody else.
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'agent-check-'));
  try {
    await fs.mkdir(path.join(directory, 'spill'));
    await checkCalls(findings, config, { ...options, directory });
  } finally {
    await fs.rm(directory, { recursive: true, force: true });
  }
}

interface CallsOptions extends ServiceOptions {
  readonly directory: string;
}

async function checkCalls(findings: Findings, config: Config, options: CallsOptions): Promise<void> {
  const { directory, signal } = options;
  let client: OverheardClient | undefined;
  const connection = await connect({ ...config, state: { directory } }, commandLog(), {
    newClient: (limits) => {
      client = new OverheardClient(limits);
      return client;
    },
  });
  const store = storeIfReadable(config);
  try {
    const { session, remote, secrets } = connection;
    if (!(await findings.step('sign-in', () => checkSignIn(session, signal)))) return;
    const jobId = options.job ?? config.watch[0]?.job ?? store?.jobs.all()[0]?.jobId;
    if (jobId === undefined) {
      findings.skip('call', 'no job is known (--job ID)');
      return;
    }
    const files = filesOf(jobId, options.task, config, store);
    const call = { remote, jobId, secrets, files, signal, lastAnswer: () => client?.lastAnswer ?? '' };
    if (await findings.step('call', () => checkListing(call))) {
      await findings.step('live files', () => checkLiveFiles(call));
    }
    if (store !== undefined) await findings.step('learned', () => habitsOf(store, config.service.contentEncoding));
  } finally {
    store?.close();
    await connection.close();
  }
}

/** The live files of a job that are known from the command line, the configuration or the state. */
function filesOf(jobId: JobId, tasks: readonly TaskId[], config: Config, store: Store | undefined): KnownFile[] {
  const rows = store?.liveFiles.ofJob(jobId) ?? [];
  const named = tasks.length > 0 ? tasks : (config.watch.find(({ job }) => job === jobId)?.tasks ?? []);
  if (named.length === 0) return rows;
  const positionOf = (key: LiveFileKey) => rows.find((row) => keyText(row) === keyText(key))?.position ?? 0;
  return named
    .flatMap((taskId) => LIVE_FILE_NAMES.map((file) => ({ taskId, file })))
    .map((key) => ({ ...key, position: positionOf(key) }));
}

function storeIfReadable(config: Config): Store | undefined {
  try {
    return openSharedStore(config);
  } catch {
    return undefined;
  }
}
