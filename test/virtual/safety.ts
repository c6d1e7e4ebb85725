/** What holds at every moment, whatever happened (ARCHITECTURE.md, "Invariants"; docs/guarantees.md). */
import fs from 'node:fs';
import path from 'node:path';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { keyText } from '../../src/job.ts';
import { isPartialName } from '../../src/safe-names.ts';
import type { LiveFileRow } from '../../src/store/rows.ts';
import type { Store } from '../../src/store/store.ts';
import type { SimulatedFile, SimulatedJob } from './cluster.ts';
import type { Lengths } from './collections.ts';
import type { World } from './world.ts';

const UNREADABLE = /\[object |\bNaN\b|\bundefined\b/;

/** Whether a line or page for people shows each value. */
export const isReadable = (text: string) => !UNREADABLE.test(text);

/** An event is delivered again only if a kill came before its delivery was committed. */
const MAX_DELIVERIES = 3;
/** Timers, open files and calls of an agent for each job it follows, and beside them. */
const MAX_EACH = 24;
const MAX_BESIDE = 40;

/** A world, and what its jobs are to have; without a store, no agent runs. */
interface Files {
  readonly service: { readonly jobs: ReadonlyMap<string, SimulatedJob> };
  readonly mirrors: string;
  readonly disk: World['disk'];
  readonly store?: Store | undefined;
}

/** Holds of each job whose files are not being removed. */
function checkFiles(files: Files): void {
  const { service, mirrors, disk, store } = files;
  const rows = new Set(store?.jobs.all().map(({ jobId }) => jobId));
  for (const job of service.jobs.values()) {
    if (!fs.existsSync(path.join(mirrors, job.id))) continue;
    checkMirrors(files, job);
    checkResults(files, job);
    if (rows.has(job.id)) for (const file of store?.liveFiles.ofJob(job.id) ?? []) checkRow(files, file);
  }
  if (store !== undefined) checkRows(disk);
}

export function checkSafety(world: World): void {
  const { service, mirrors, disk } = world;
  checkFiles({ service, mirrors, disk, store: world.isUp ? world.agent.store : undefined });
  for (const [id, times] of world.receiver.taken)
    if (times > MAX_DELIVERIES) throw new Error(`the event ${id} was delivered ${times} times`);
  if (!world.isUp) return;
  const { store, engine, process, holder } = world.agent;
  const most = MAX_BESIDE + MAX_EACH * world.service.jobs.size;
  const counts = { timers: process.timers, open: world.disk.open, texts: holder.held, waiting: engine.callsWaiting() };
  for (const [what, count] of Object.entries(counts))
    if (count > most) throw new Error(`${count} ${what}, at most ${most} are explained`);
  const followed = store.jobs.followedByRule();
  const { maxJobs = Number.POSITIVE_INFINITY } = store.watchMine.inForce() ?? {};
  if (followed > Math.max(maxJobs, MOST_BEFORE)) throw new Error(`${followed} jobs are followed by the rule`);
}

/** Entries of one collection beside those of jobs: statements of SQL, columns. */
const MAX_FIXED = 300;
/** For each job, live file and result. */
const MAX_OF_ONE = 4;

/** What an agent remembers is bounded by what it follows. */
export function checkMemory({ service }: Pick<World, 'service'>, all: Lengths): void {
  const jobs = [...service.jobs.values()];
  const things = jobs.reduce((sum, { tasks, results }) => sum + 1 + 4 * tasks.length + results.size, 0);
  const most = MAX_FIXED + MAX_OF_ONE * things;
  // Of each kind of secret, the latest eight are kept, in pieces (test/redact.test.ts).
  const lengths = [...all].filter(([name]) => !name.startsWith('Secrets.'));
  for (const [name, length] of lengths)
    if (length > most) throw new Error(`${name} has ${length} entries for ${things} jobs and files`);
}

/** An agent that stopped has given back all that it took. */
export function checkStopped({ agent, disk }: World): void {
  const { process, holder, line } = agent;
  const counts = { timers: process.timers, 'open files': disk.open, texts: holder.held, calls: line?.running ?? 0 };
  for (const [what, count] of Object.entries(counts)) if (count > 0) throw new Error(`a stop leaves ${count} ${what}`);
}

/** Nothing is in the store that no row of `agent status` shows: each row of a job has its job. */
function checkRows({ database }: World['disk']): void {
  const tables = database.column(
    "SELECT DISTINCT m.name FROM sqlite_master AS m, pragma_table_info(m.name) AS column WHERE m.type = 'table' AND column.name = 'job_id' AND m.name <> 'former_jobs'",
  );
  for (const table of tables) {
    // The command that asked for a removal reads its answer afterwards; one that waits for a removed job hears of it.
    const where = table === 'requests' ? "answer IS NULL AND kind <> 'follow' AND" : '';
    const [found] = database.column(
      `SELECT job_id FROM ${table} WHERE ${where} job_id NOT IN (SELECT job_id FROM jobs) LIMIT 1`,
    );
    if (found !== undefined) throw new Error(`the table ${table} has rows of ${found}, which is no job of the store`);
  }
  const [stray] = database.column(
    'SELECT job_id FROM read_positions WHERE (job_id, task_id, file) NOT IN (SELECT job_id, task_id, file FROM live_files)',
  );
  if (stray !== undefined) throw new Error(`read_positions has rows of ${stray}, of a file that it does not have`);
  const [wrong] = database.column(WRONG_COUNTS);
  if (wrong !== undefined) throw new Error(`the results of ${wrong} are counted wrong`);
}

/** Jobs of which status shows other numbers of results than there are. */
const WRONG_COUNTS = `
  SELECT job_id FROM (SELECT job_id, state, count(*) AS there, sum(coalesce(bytes, 0)) AS size FROM result_files GROUP BY 1, 2)
    FULL JOIN result_counts USING (job_id, state)
  WHERE coalesce(there, 0) <> coalesce(kept, 0) OR coalesce(size, 0) <> coalesce(bytes, 0)`;

/** Jobs that an earlier rule took. */
const MOST_BEFORE = 4;

/** Each mirror, and each kept generation, is the beginning of one content that the remote file had. */
export function checkMirrors({ mirrors, disk }: Pick<Files, 'mirrors' | 'disk'>, job: SimulatedJob): void {
  for (const task of job.tasks) {
    const directory = path.join(mirrors, job.id, 'live', task.id);
    if (!fs.existsSync(directory)) continue;
    for (const name of fs.readdirSync(directory)) {
      const [, file] = /^([a-z]+)\.log(?:\.[0-9]+)?$/.exec(name) ?? [];
      if (file === undefined) continue;
      // Zeros that a loss of power left may follow the committed bytes until a poll has compared them.
      const bytes = disk.withoutZeros(path.join(directory, name));
      const remote = task.files[file as keyof typeof task.files];
      if (!isBeginning(bytes, remote)) throw new Error(`${job.id}/${task.id}/${name} is the beginning of no content`);
    }
  }
}

const isBeginning = (bytes: Buffer, { contents }: SimulatedFile) =>
  bytes.length === 0 || contents.some((content) => content.subarray(0, bytes.length).equals(bytes));

/** Nothing is promised that is not there, and no generation is invented. */
export function checkRow({ service, mirrors, disk }: Files, row: LiveFileRow): void {
  const name = `${row.jobId} ${keyText(row)}`;
  const file = mirrorPath(mirrors, row.jobId, row);
  const length = disk.durableLength(file);
  if (row.position > length)
    throw new Error(`${name}: ${row.position} bytes are committed, and ${length} safely in the mirror`);
  const remote = service.jobs.get(row.jobId)?.tasks.find(({ id }) => id === row.taskId)?.files[row.file];
  const shown = Math.max(1, remote?.changesShown ?? 0);
  if (row.generation > shown && remote?.wasBehind !== true)
    throw new Error(`${name}: generation ${row.generation} of ${shown} that were shown`);
}

/** What stands under the name of a result is one whole content of it, or a link to its mirror. */
function checkResults({ mirrors, store }: Files, job: SimulatedJob): void {
  const directory = resultsDirectory(mirrors, job.id);
  const whole = new Set<string>();
  for (const name of fs.existsSync(directory) ? fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }) : []) {
    const file = path.join(directory, name);
    if (!fs.lstatSync(file).isFile() || isPartialName(path.basename(name))) continue;
    const bytes = fs.readFileSync(file);
    if (!isWhole(job, `/${name}`, bytes)) throw new Error(`${job.id}: the result ${name} is no content of it`);
    whole.add(`/${name}`);
  }
  for (const { name, state, sha256 } of store?.results.ofJob(job.id) ?? []) {
    if (sha256 !== null && !whole.has(name) && !isLink(directory, name))
      throw new Error(`${job.id}: the result ${name} is ${state}, and not there`);
  }
}

const isLink = (directory: string, name: string) =>
  fs.lstatSync(path.join(directory, name), { throwIfNoEntry: false })?.isSymbolicLink() === true;

function isWhole(job: SimulatedJob, name: string, bytes: Buffer): boolean {
  const live = job.liveFileAt(name);
  // A live file that grows is whole as it was at some moment.
  if (live !== undefined) return isBeginning(bytes, live);
  return job.results.get(name)?.contents.some((content) => content.equals(bytes)) === true;
}
