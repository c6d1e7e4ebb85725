/**
 * The other side for results by SOAP: the work of the agent in the least code. It decodes, hashes, writes, flushes, renames and
 * commits, so a result has the same guarantees. It checks, limits, resumes and compares nothing.
 *
 *     least-code.js FILE
 *
 * FILE has a `LeastWork` as JSON; all that it makes is beside it. Prints `LeastDone`. Its start is not among the seconds, as
 * on our side.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import Database from 'better-sqlite3';
import { Agent, request } from 'undici';
import type { Operation } from '../../src/operations.ts';
import { actionOf } from '../../src/remote/soap/contract.ts';
import { NAMESPACE } from '../service/job.ts';
import { requestOf } from '../service/process.ts';
import { WRITING } from '../service/protocols.ts';

export interface LeastWork {
  readonly url: string;
  readonly names: readonly string[];
  readonly callsAtATime: number;
}

export interface LeastDone {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly files: number;
  readonly bytes: number;
  /** Of the last file. */
  readonly sha256: string;
}

/** As many as the agent saves together. */
const ROWS_AT_A_TIME = 500;
/** Strings of this size stay in the cache of the processor. */
const SLICE_BYTES = 32 * 1024;
/** More than a chunk of a body. */
const SPACE_BYTES = 1024 * 1024;

const [, , file = ''] = process.argv;
const work = JSON.parse(fs.readFileSync(file, 'utf8')) as LeastWork;
const at = (name: string) => path.join(path.dirname(file), name);
const [staging, results] = [at('staging'), at('results')];
for (const directory of [staging, results]) fs.mkdirSync(directory);
const db = new Database(at('results.db'));
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
db.exec('CREATE TABLE results (name TEXT PRIMARY KEY, bytes INTEGER, sha256 TEXT) STRICT');
const insert = db.prepare('INSERT INTO results VALUES (?, ?, ?)');
// On Node.js 24, better-sqlite3 ends the process when the collector takes a statement.
process.on('exit', () => [db, insert]);
let unsaved: { readonly name: string; readonly bytes: number; readonly sha256: string }[] = [];
const sum = { files: 0, bytes: 0, sha256: '' };

async function place(temporary: string, name: string, bytes: number, sha256: string): Promise<void> {
  fs.mkdirSync(path.dirname(path.join(results, name)), { recursive: true });
  fs.renameSync(temporary, path.join(results, name));
  unsaved.push({ name, bytes, sha256 });
  Object.assign(sum, { files: sum.files + 1, bytes: sum.bytes + bytes, sha256 });
  if (unsaved.length >= ROWS_AT_A_TIME) await save();
}

/** After the names are on the disk. */
async function save(): Promise<void> {
  const rows = unsaved;
  unsaved = [];
  for (const directory of new Set(rows.map(({ name }) => path.dirname(path.join(results, name))))) {
    const handle = await fs.promises.open(directory);
    await handle.sync();
    await handle.close();
  }
  db.transaction(() => {
    for (const { name, bytes, sha256 } of rows) insert.run(name, bytes, sha256);
  })();
}

async function fetchAll({ url, names, callsAtATime }: LeastWork): Promise<void> {
  const dispatcher = new Agent({ connections: callsAtATime });
  const { contentType, file: around } = WRITING.soap;
  const call = async (operation: Operation, name: string) => {
    const headers = { 'content-type': contentType, SOAPAction: `"${actionOf(NAMESPACE, operation)}"` };
    const body = requestOf(operation, `<relativeFilePath>${name}</relativeFilePath>`);
    return (await request(url, { method: 'POST', headers, body, dispatcher })).body;
  };
  // The agent has called its service before, too.
  await (await call('EndFileTransfer', '')).dump();
  const queue = names.entries();
  const fetchSome = async () => {
    const space = Buffer.allocUnsafe(SPACE_BYTES);
    for (const [index, name] of queue) {
      const temporary = path.join(staging, String(index));
      const handle = await fs.promises.open(temporary, 'wx');
      const sha256 = createHash('sha256');
      let bytes = 0;
      for await (const piece of decoded(await call('DownloadFileFromCluster', name), around, space)) {
        const writing = handle.write(piece);
        sha256.update(piece);
        bytes += piece.length;
        await writing;
      }
      await handle.datasync();
      await handle.close();
      await place(temporary, name, bytes, sha256.digest('hex'));
    }
  };
  await clocked(async () => {
    await Promise.all(Array.from({ length: callsAtATime }, fetchSome));
    await save();
  });
  await dispatcher.close();
}

/** The bytes of the base64 between `before` and `after`; each is valid until the next one. */
async function* decoded(
  body: AsyncIterable<Buffer>,
  { before, after }: { readonly before: string; readonly after: string },
  space: Buffer,
): AsyncGenerator<Buffer> {
  let skip = before.length;
  let carry = '';
  let isOver = false;
  for await (const chunk of body) {
    if (isOver) continue;
    const end = chunk.indexOf(after.charAt(0), skip);
    isOver = end >= 0;
    const stop = isOver ? end : chunk.length;
    let length = 0;
    for (let at = skip; at < stop; at += SLICE_BYTES) {
      const text = carry + chunk.toString('latin1', at, Math.min(at + SLICE_BYTES, stop));
      // Whole groups of four.
      const groups = text.length & ~3;
      carry = text.slice(groups);
      length += space.write(text.slice(0, groups), length, 'base64');
    }
    if (isOver) length += space.write(carry, length, 'base64');
    skip = Math.max(0, skip - chunk.length);
    yield space.subarray(0, length);
  }
}

async function clocked(run: () => Promise<void>): Promise<void> {
  const [cpu, startedMs] = [process.cpuUsage(), performance.now()];
  await run();
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const done: LeastDone = { ...sum, seconds, cpuSeconds: (user + system) / 1e6 };
  process.stdout.write(`${JSON.stringify(done)}\n`);
}

await fetchAll(work);
