/** What an agent that has nothing to do holds of the machine's memory for itself, and what of it is whose. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figures, Measurement, Place, Prepared, Side } from './measurement.ts';
import { privateMemoryOf, type Started, startProcess } from './processes.ts';
import { AgentPlace, ALL_FILES, type RunningMiddleware, startMiddleware, untilAsked } from './watching.ts';

/** The flags of the agent. */
const SMALL_HEAP = new URL('../src/system/small-heap.js', import.meta.url).href;
const FILE_BYTES = 3_000;
/** Until what a start left behind was collected and given back. */
const SETTLING_MS = 5_000;
const POLLS = 4;

/** Node.js alone, and with the database that the agent keeps its state in. */
const NODE = 'setInterval(() => {}, 1e6)';
const SQLITE = `const { default: Database } = await import('better-sqlite3'); const db = new Database(process.argv[1]); db.pragma('journal_mode = WAL'); db.exec('CREATE TABLE t (a)'); ${NODE}`;

/** What a daemon with a configuration, a log and a database loads; and with jobs, calls of the service. */
const PARTS = `for (const name of ['yaml', 'valibot', 'pino', 'commander', 'p-queue']) await import(name); ${SQLITE}`;
const CALLS = `const { request } = await import('undici'); setInterval(async () => { for (let job = 0; job < 10; job += 1) { const { body } = await request(process.argv[2] + '/FileTransferWs', { method: 'POST', body: '' }); await body.dump(); } }, 1000); await import('sax'); ${PARTS}`;

async function settled(started: Started, quick: boolean): Promise<Figures> {
  await sleep(quick ? 1_000 : SETTLING_MS);
  const figures = privateMemoryOf(started.pid);
  await started.stop();
  return { ...figures };
}

/** An agent that follows so many jobs in which nothing happens. */
function agent({ directory, quick }: Place, middleware: RunningMiddleware, jobs: number): Side {
  return async () => {
    const place = new AgentPlace(fs.mkdtempSync(path.join(directory, 'agent-')));
    place.prepare(middleware, { jobs, files: ALL_FILES, intervalSeconds: 1, requestsPerMinute: 1_000_000 });
    await middleware.reset();
    const started = place.start();
    if (jobs > 0) await untilAsked(started, middleware, jobs * POLLS);
    return await settled(started, quick);
  };
}

export const idleMemory: Measurement = {
  name: 'idle-memory',
  needs: [],
  rounds: 3,
  goals: [
    {
      what: 'private memory of an agent that follows nothing, against `node` that waits',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent', peer: 'node', atMost: 3 },
    },
    {
      what: 'the same, against `node` with the packages of an agent without jobs, and an open database',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent', peer: 'packages', atMost: 1.5 },
    },
    {
      what: 'private memory of an agent with 10 quiet jobs, against `node` that waits',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent, 10 jobs', peer: 'node', atMost: 5.5 },
    },
    {
      what: 'the same, against `node` with its packages, an open database, and the same calls',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent, 10 jobs', peer: 'calls', atMost: 1.5 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const { directory, quick } = place;
    const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
    const script = (text: string, ...args: readonly string[]) =>
      settled(
        startProcess(process.execPath, ['--import', SMALL_HEAP, '--input-type=module', '-e', text, ...args]),
        quick,
      );
    const database = () => path.join(fs.mkdtempSync(path.join(directory, 'db-')), 'state.db');
    return {
      sides: {
        node: () => settled(startProcess(process.execPath, ['-e', NODE]), quick),
        sqlite: () => script(SQLITE, database()),
        packages: () => script(PARTS, database()),
        calls: () => script(CALLS, database(), middleware.url),
        agent: agent(place, middleware, 0),
        'agent, 10 jobs': agent(place, middleware, 10),
      },
      close: () => middleware.stop(),
    };
  },
};
