/** What an agent that has nothing to do holds of the machine's memory for itself, and what of it is whose. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figures, Measurement, Place, Prepared, Side } from './measurement.ts';
import { privateMemoryOf, type Started, startProcess } from './processes.ts';
import { AgentPlace, ALL_FILES, type RunningMiddleware, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
/** Until what a start left behind was collected and given back. */
const SETTLING_MS = 5_000;
const POLLS = 4;

const NODE = 'setInterval(() => {}, 1e6)';

async function settled(started: Started, quick: boolean): Promise<Figures> {
  await sleep(quick ? 1_000 : SETTLING_MS);
  const privateBytes = privateMemoryOf(started.pid);
  await started.stop();
  return { privateBytes };
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
      what: 'private memory of an agent with 10 quiet jobs, against `node` that waits',
      ...{ kind: 'ratio', figure: 'privateBytes', ours: 'agent, 10 jobs', peer: 'node', atMost: 5.5 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
    return {
      sides: {
        node: () => settled(startProcess(process.execPath, ['-e', NODE]), place.quick),
        agent: agent(place, middleware, 0),
        'agent, 10 jobs': agent(place, middleware, 10),
      },
      close: () => middleware.stop(),
    };
  },
};
