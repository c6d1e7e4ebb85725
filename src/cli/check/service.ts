/** `agent check`: signs in, makes a real call, and reports the capabilities of the server (docs/dev/servers.md). */

import fs from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import type { JobService, Remote, Session } from '../../agent/ports/server.ts';
import type { Config } from '../../config/config.ts';
import { connect, passingCapabilities } from '../../daemon/connection.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../job.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Secrets } from '../../redact.ts';
import type { Store } from '../../store/store.ts';
import { temporaryDirectory } from '../../system/directories.ts';
import { commandLog } from '../process.ts';
import { type Finding, type Findings, note, ok, warning } from './findings.ts';
import { checkJobs, healthOf, restCapabilitiesOf } from './server.ts';

const MAX_SHOWN = 200;
const MAX_LISTED = 16;

interface ServiceOptions {
  readonly config: Config;
  /** The job of the test call; a known one if omitted. */
  readonly jobId: JobId | undefined;
  /** Its tasks; the known ones if empty. */
  readonly tasks: readonly TaskId[];
  readonly store: Store | undefined;
  readonly signal: AbortSignal;
}

export async function checkService(findings: Findings, options: ServiceOptions): Promise<void> {
  // The directory of the agent may be missing, or belong to another user.
  const directory = temporaryDirectory('agent-check-');
  try {
    await fs.mkdir(path.join(directory, 'spill'));
    await checkCalls(findings, { ...options, config: { ...options.config, state: { directory } } });
  } finally {
    await fs.rm(directory, { recursive: true, force: true });
  }
}

async function checkCalls(findings: Findings, options: ServiceOptions): Promise<void> {
  const { config, store, signal } = options;
  const capabilities = passingCapabilities(store?.capabilities);
  const connection = await connect(config, commandLog(), { capabilities });
  const { session, jobService } = connection;
  try {
    if (!(await findings.step('sign-in', () => checkSignIn(session, signal)))) return;
    await findings.step('jobs', () => checkJobs(config, jobService, signal));
    const jobId = options.jobId ?? config.watch[0]?.job ?? store?.jobs.all()[0]?.jobId;
    if (jobId === undefined) findings.skip('call', 'no job to test (--job ID)');
    else {
      const call = { ...connection, jobId, files: await filesOf(jobId, options, jobService), signal };
      if (await findings.step('call', () => checkListing(call)))
        await findings.step('live files', () => checkLiveFiles(call));
    }
    if (config.service.protocol === 'rest') {
      await findings.step('health', () => healthOf(config, signal));
      await findings.step('server', () => restCapabilitiesOf(capabilities));
    }
  } finally {
    await connection.close();
  }
}

interface KnownFile extends LiveFileKey {
  readonly position: number;
}

/** The live files of a job, from the command line, the configuration, the state or the job service. */
async function filesOf(
  jobId: JobId,
  { config, tasks, store, signal }: ServiceOptions,
  jobService: JobService | null,
): Promise<readonly KnownFile[]> {
  const rows = store?.liveFiles.ofJob(jobId) ?? [];
  let named = tasks.length > 0 ? tasks : (config.watch.find(({ job }) => job === jobId)?.tasks ?? []);
  if (named.length === 0 && rows.length > 0) return rows;
  if (named.length === 0) {
    // Without a job service, the call itself reports the error.
    const job = await jobService?.getJob(jobId, signal).catch(() => undefined);
    named = job?.tasks.map(({ id }) => id).slice(0, MAX_LISTED) ?? [];
  }
  const positionOf = (key: LiveFileKey) => rows.find((row) => keyText(row) === keyText(key))?.position ?? 0;
  return named
    .flatMap((taskId) => LIVE_FILE_NAMES.map((file) => ({ taskId, file })))
    .map((key) => ({ ...key, position: positionOf(key) }));
}

async function checkSignIn(session: Session, signal: AbortSignal): Promise<Finding[]> {
  const startedAt = performance.now();
  const { kind } = await session.current(signal);
  const what = kind === 'session' ? 'a session code' : 'the token is sent with every call';
  return [ok(`${what}, in ${Math.round(performance.now() - startedAt)} ms`)];
}

interface CallOptions {
  readonly remote: Remote;
  readonly secrets: Secrets;
  readonly jobId: JobId;
  readonly files: readonly KnownFile[];
  readonly signal: AbortSignal;
}

async function checkListing({ remote, jobId, secrets, signal }: CallOptions): Promise<Finding[]> {
  const startedAt = performance.now();
  const names = await remote.listChangedFiles(jobId, signal);
  const took = `${Math.round(performance.now() - startedAt)} ms`;
  const found = [ok(`job ${jobId} lists ${names.length} files, in ${took}`)];
  const [first] = names;
  if (first === undefined) found.push(note('an empty list: the job may not be submitted yet, or has no files yet'));
  else found.push(note(`the first one: ${secrets.hide(printable(first.slice(0, MAX_SHOWN)))}`));
  return found;
}

async function checkLiveFiles({ remote, jobId, files, signal }: CallOptions): Promise<Finding[]> {
  if (files.length === 0) return [note(`not tested: no task of job ${jobId} found (--task ID)`)];
  // Starts a little before the known end: no check needs gigabytes.
  const wanted = files.map(({ taskId, file, position }) => ({ taskId, file, offset: Math.max(0, position - 1) }));
  const { parts, refused } = await remote.readParts(jobId, wanted, signal);
  // Undecodable bytes are longer in the text.
  const sizes = parts.map((part) => `${part.taskId} ${part.file} ${showBytes(part.offset + part.content.length)}`);
  for (const { content } of parts) await content.release();
  const tasks = [...new Set(files.map(({ taskId }) => taskId))].join(', ');
  const found =
    parts.length === 0
      ? [note(`none of task ${tasks} yet: they appear at the first write; check the id`)]
      : [ok(`${parts.length} of ${files.length} are there, as text: ${sizes.join(', ')}`)];
  if (refused > 0) {
    found.push(
      warning(
        `${refused} entries that were not requested`,
        'they are ignored; report it to the operator of the service',
      ),
    );
  }
  return found;
}
