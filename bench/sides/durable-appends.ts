/**
 * Appends to many files, round by round, each flushed and committed: by polls of the agent that end at about the same
 * time, by nothing but the flushes of the file system and of SQLite that such polls come down to, or by the least code
 * that gives the same guarantees.
 */
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import Database from 'better-sqlite3';
import { Mirrors } from '../../src/agent/live/mirror/mirror.ts';
import { RawBytes } from '../../src/agent/live/raw-bytes.ts';
import { JobPolls, type PollContext } from '../../src/agent/poll/poll.ts';
import type { Content, PartRequest, Parts, Remote } from '../../src/agent/ports/server.ts';
import { parseJobId, parseTaskId } from '../../src/job.ts';
import { textSources } from '../../src/remote/text/text-source.ts';
import { Commits, Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/clock.ts';
import { textOf } from '../growth.ts';

const OVERLAP_BYTES = 256;

export interface AppendsRequest {
  readonly side: 'agent' | 'alone' | 'least';
  readonly directory: string;
  readonly files: number;
  readonly rounds: number;
  /** Of one append. */
  readonly bytes: number;
  /** For the other sides: transactions in all. */
  readonly commits: number;
}

export interface AppendsDone {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly commits: number;
}

/** What the middleware has, without a middleware. */
class GrowingTexts implements Pick<Remote, 'readParts'> {
  length = 0;
  /** The last one: all files grow alike, and making texts is not what is measured. */
  #text = { offset: -1, bytes: Buffer.alloc(0) };

  async readParts(_job: string, wanted: readonly PartRequest[]): Promise<Parts> {
    const parts = wanted.map((request) => ({ ...request, relativePath: null, content: this.#from(request.offset) }));
    return { parts, refused: 0 };
  }

  #from(offset: number): Content {
    if (this.#text.offset !== offset || offset + this.#text.bytes.length !== this.length)
      this.#text = { offset, bytes: Buffer.from(textOf(offset, this.length)) };
    const { bytes } = this.#text;
    return {
      length: bytes.length,
      read: async (start, end) => bytes.subarray(start, end),
      release: async () => {},
    };
  }
}

async function byAgent({ directory, files, rounds, bytes }: AppendsRequest): Promise<AppendsDone> {
  const state = path.join(directory, 'state');
  fs.mkdirSync(state);
  const mirrorDirectory = path.join(directory, 'mirror');
  const store = new Store({ directory: state, service: '', owner: true, now: Date.now });
  const jobs = Array.from({ length: files }, (_, index) => idsOf(index + 1));
  store.transaction(() => {
    for (const { jobId, taskId } of jobs) {
      const order = { jobId, tasks: [taskId], files: ['stdout'] as const, results: false, settleAfterMs: null };
      store.jobs.watch({ ...order, source: 'command' }, Date.now());
    }
  });
  const texts = new GrowingTexts();
  const remote = texts as unknown as Remote;
  let commitCount = 0;
  const commits = new Commits({
    transaction: (work) => {
      commitCount += 1;
      store.transaction(work);
    },
    timer: systemClock.timer,
  });
  const context: PollContext = {
    store,
    commit: (write, withinMs) => commits.commit(write, withinMs),
    sourceOf: textSources({
      capabilities: store.capabilities,
      direct: null,
      batchLimit: { files: 100 },
      onChange: () => {},
    }),
    rawBytes: new RawBytes(systemClock.monotonic),
    now: Date.now,
    monotonic: systemClock.monotonic,
    liveFiles: {
      mirrors: new Mirrors(mirrorDirectory, false),
      overlapBytes: OVERLAP_BYTES,
      keepGenerations: 5,
      now: Date.now,
      checkpoint: () => {},
      commit: (row) => store.transaction(() => store.liveFiles.save(row)),
    },
  };
  const polls = jobs.map(({ jobId }) => new JobPolls(jobId, context));
  const signal = new AbortController().signal;
  const round = async () => {
    texts.length += bytes;
    await Promise.all(polls.map((each) => each.poll({ remote, whole: remote, isFinal: false, signal })));
  };
  // The first one makes the files.
  await round();
  commitCount = 0;
  const used = await measured(rounds, round);
  store.close();
  return { ...used, commits: commitCount };
}

/** `least`: each append compares the overlap. */
async function alone({ side, directory, files, rounds, bytes, commits }: AppendsRequest): Promise<AppendsDone> {
  const db = new Database(path.join(directory, 'positions.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE positions (file INTEGER PRIMARY KEY, position INTEGER, checksum INTEGER) STRICT');
  const update = db.prepare('INSERT OR REPLACE INTO positions VALUES (?, ?, ?)');
  const paths = Array.from({ length: files }, (_, index) => path.join(directory, `${index}.log`));
  for (const file of paths) fs.writeFileSync(file, '');
  const descriptors = paths.map((file) => fs.openSync(file, 'r+'));
  const perRound = Math.max(1, Math.round(commits / rounds));
  const checksums = paths.map(() => 0);
  let length = 0;
  const append = async (descriptor: number, text: Buffer) => {
    fs.writeSync(descriptor, text, 0, bytes, length);
    await promisify(fs.fdatasync)(descriptor);
  };
  const appendChecked = async (file: number, text: Buffer, overlap: Buffer) => {
    const descriptor = fs.openSync(paths[file] ?? '', 'r+');
    const { size } = fs.fstatSync(descriptor);
    const before = Buffer.alloc(overlap.length);
    fs.readSync(descriptor, before, 0, before.length, length - before.length);
    if (size !== length || !before.equals(overlap)) throw new Error('the mirror is another one');
    await append(descriptor, text);
    checksums[file] = crc32(text, checksums[file]);
    fs.closeSync(descriptor);
  };
  const round = async () => {
    const text = Buffer.from(textOf(length, length + bytes));
    const overlap = Buffer.from(textOf(Math.max(0, length - OVERLAP_BYTES), length));
    await Promise.all(
      descriptors.map((descriptor, file) =>
        side === 'least' ? appendChecked(file, text, overlap) : append(descriptor, text),
      ),
    );
    length += bytes;
    for (let commit = 0; commit < perRound; commit += 1) {
      db.transaction(() => {
        for (let file = commit; file < files; file += perRound) update.run(file, length, checksums[file]);
      }).immediate();
    }
  };
  await round();
  const used = await measured(rounds, round);
  for (const descriptor of descriptors) fs.closeSync(descriptor);
  db.close();
  return { ...used, commits: perRound * rounds };
}

async function measured(rounds: number, round: () => Promise<void>): Promise<Omit<AppendsDone, 'commits'>> {
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  for (let count = 0; count < rounds; count += 1) await round();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - startedMs) / 1000, cpuSeconds: (user + system) / 1e6 };
}

function idsOf(number: number) {
  const [jobId, taskId] = [parseJobId(number), parseTaskId(number)];
  if (jobId === undefined || taskId === undefined) throw new Error(`${number} is no id`);
  return { jobId, taskId };
}

const [, script, text] = process.argv;
if (script !== undefined && import.meta.filename === script && text !== undefined) {
  const order = JSON.parse(text) as AppendsRequest;
  process.stdout.write(JSON.stringify(await (order.side === 'agent' ? byAgent(order) : alone(order))));
}
