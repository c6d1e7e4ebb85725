/** What people do to an agent: commands, a changed configuration, a mended secret, a stop. */

import fs, { writeFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { isHere, proofs, type Verified } from '../../src/agent/pass/verification.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { EXIT } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import type { Settings } from './agent.ts';
import type { World } from './world.ts';

export const MINUTE_MS = 60_000;
/** The job of worlds in which nothing happens by chance. */
export const JOB = '501' as JobId;
/** A verification of a few small files, each of which may hang up to its time limit. */
const VERIFIED_WITHIN_MS = 120 * MINUTE_MS;
/** A stop, or a reload, takes no longer beside its flushes, whatever hangs (docs/service.md). */
const MAX_STOP_MS = 10_000;
/** One after the other, of a step that is not broken off: a mirror is rotated (5), begins to grow, and is committed. */
const MAX_STEP_FLUSHES = 7;

type Job = ReturnType<World['service']['job']>;

interface ListedFile {
  readonly content: Buffer;
  /** Where it may be here: a live file that no poll has read yet is a result. */
  readonly places: readonly string[];
}

/** The files of a job as they are now, by their listed names. */
function listedOf(mirrors: string, { id: jobId, tasks, results }: Job): Map<string, ListedFile> {
  const live = tasks.flatMap(({ id: taskId, files }) =>
    LIVE_FILE_NAMES.map((file) => {
      const mirror = mirrorPath(mirrors, jobId, { taskId, file });
      return { name: `/${taskId}/${file}.txt`, mirror: [mirror], contents: files[file].contents };
    }),
  );
  // What is no readable file has no content that could be here.
  const files = [...results].filter(([, { kind }]) => kind === 'file');
  const others = files.map(([name, { contents }]) => ({ name, mirror: [], contents }));
  return new Map(
    [...live, ...others].flatMap(({ name, mirror, contents }) => {
      const places = [...mirror, path.join(resultsDirectory(mirrors, jobId), name)];
      return contents.slice(-1).map((content) => [name, { content, places }] as const);
    }),
  );
}

/** As `agent watch`, in the process of the agent. */
export function order({ agent, time }: World, results: boolean, jobId = JOB): void {
  const order = { jobId, tasks: null, files: LIVE_FILE_NAMES, results, settleAfterMs: null } as const;
  agent.store.transaction(() => agent.store.jobs.watch({ ...order, source: 'command' }, time.wallMs));
  agent.refresh();
}

/** What `agent verify` finds, undefined if it fails. @throws Error if a file counts as here, unchanged, and is not */
export async function verified({ agent, mirrors, time, disk, service }: World, jobId: JobId) {
  const { store, config } = agent;
  const { signal } = new AbortController();
  const options = { mirrorDirectory: config.mirror.directory, store, remote: agent.beside(), signal };
  const found: Verified[] = [];
  const work = async () => {
    for await (const one of proofs(jobId, options)) found.push(one);
    return found;
  };
  const job = service.job(jobId);
  const before = listedOf(mirrors, job);
  const failed = () => undefined;
  const all = await time.passWhile(work().catch(failed), VERIFIED_WITHIN_MS, agent.process);
  // A deleted job has no files.
  if (all?.length === 0 || all?.every(isHere) !== true || job.state === 'Deleted') return all;
  for (const [name, { content, places }] of listedOf(mirrors, job)) {
    const isWhole = (at: string) => fs.existsSync(at) && fs.readFileSync(at).equals(content);
    if (before.get(name)?.content === content && !disk.aside(() => places.some(isWhole)))
      throw new Error(`verify finds all of job ${jobId} here, and ${name} is not`);
  }
  return all;
}

/** The agent stops within seconds, whatever hangs but a flush; one that stands still does so afterwards. */
export async function ended({ time, agent, disk }: World, end: Promise<void>): Promise<void> {
  const standsMs = Math.max(0, agent.process.stoppedUntil - time.passedMs);
  const flushesMs = disk.flushMs * (MAX_STEP_FLUSHES + disk.unflushed);
  await time.passWhile(end, standsMs + flushesMs + MAX_STOP_MS, agent.process);
}

/** The file of the configuration is written, or only read again: the agent follows by all of it. */
export async function reload(world: World, changes: Partial<Settings>, isAsked: boolean): Promise<void> {
  await world.configure({ ...world.settings, ...changes });
  const { agent } = world;
  if (!world.isUp) return;
  await ended(world, agent.reload(isAsked));
  if (agent.process.isAlive && !isDeepStrictEqual(agent.config, world.config))
    throw new Error(`the configuration is changed, and not in force: ${agent.refused ?? 'without a reason'}`);
}

/** A person wrote the secret anew, which the agent notices. */
export function mendSecret({ agent, directory, isUp, service }: World): void {
  service.refusals = new WeakMap();
  writeFileSync(path.join(directory, 'password'), 'hunter-secret-0502\n');
  if (isUp) agent.engine.agent.tryAgain(({ exitCode }) => exitCode === EXIT.signIn);
}
