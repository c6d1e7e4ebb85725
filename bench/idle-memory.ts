/** What an agent that has nothing to do holds of the machine's memory for itself, and what of it is whose. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figures, Measurement, Prepared, Side } from './measurement.ts';
import { privateMemoryOf, type Started, startProcess } from './processes.ts';
import { AgentPlace, ALL_FILES, type RunningMiddleware, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
/** Until what a start left behind was collected and given back. */
const SETTLING_MS = 5_000;
const POLLS = 4;

/** Node.js alone, and with the database that the agent keeps its state in. */
const NODE = 'setInterval(() => {}, 1e6)';
const SQLITE = `const db = new (require('better-sqlite3'))(process.argv[1]); db.pragma('journal_mode = WAL'); db.exec('CREATE TABLE t (a)'); ${NODE}`;

async function settled(started: Started): Promise<Figures> {
  await sleep(SETTLING_MS);
  const figures = privateMemoryOf(started.pid);
  await started.stop();
  return { ...figures };
}

/** An agent that follows so many jobs in which nothing happens. */
function agent(directory: string, middleware: RunningMiddleware, jobs: number): Side {
  return async () => {
    const place = new AgentPlace(fs.mkdtempSync(path.join(directory, 'agent-')));
    place.prepare(middleware, { jobs, files: ALL_FILES, intervalSeconds: 1, requestsPerMinute: 1_000_000 });
    await middleware.reset();
    const started = place.start();
    if (jobs > 0) await untilAsked(started, middleware, jobs * POLLS);
    return await settled(started);
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
      what: 'private memory of an agent with 10 quiet jobs, against the same',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent, 10 jobs', peer: 'node', atMost: 4 },
    },
  ],
  prepare: async ({ directory }): Promise<Prepared> => {
    const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
    const script = (text: string, ...args: readonly string[]) =>
      settled(startProcess(process.execPath, ['-e', text, ...args]));
    return {
      sides: {
        node: () => script(NODE),
        sqlite: () => script(SQLITE, path.join(fs.mkdtempSync(path.join(directory, 'db-')), 'state.db')),
        agent: agent(directory, middleware, 0),
        'agent, 10 jobs': agent(directory, middleware, 10),
      },
      close: () => middleware.stop(),
    };
  },
};
