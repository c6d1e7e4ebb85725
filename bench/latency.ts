/**
 * How late bytes are with ever more jobs that grow, and what they wait for: from the byte at the middleware to the call
 * that asks for it, and from there to the mirror.
 */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LINE_BYTES } from './growth.ts';
import { Lateness } from './lateness.ts';
import type { Figures, Measurement, Prepared } from './measurement.ts';
import { usageOf } from './processes.ts';
import { AgentPlace, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
/** A line each 100 ms. */
const BYTES_PER_SECOND = 10 * LINE_BYTES;
const COUNTS = [1, 100, 1_000];
/** As in the configuration by default. */
const INTERVAL_SECONDS = 2;

async function latencyOf(directory: string, jobs: number, seconds: number, intervalSeconds: number): Promise<Figures> {
  const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: BYTES_PER_SECOND });
  const place = new AgentPlace(directory);
  const files = ['stdout'] as const;
  place.prepare(middleware, { jobs, files, intervalSeconds, requestsPerMinute: 1_000_000 });
  const agent = place.start();
  await untilAsked(agent, middleware, jobs * 3);
  await middleware.reset();
  const growth = { startedAt: middleware.startedAt, fileBytes: FILE_BYTES, bytesPerSecond: BYTES_PER_SECOND };
  const lateness = new Lateness(growth, place.mirrorsOfStdout(jobs));
  const before = usageOf(agent.pid);
  await sleep(seconds * 1000);
  const coreShare = (usageOf(agent.pid).cpuSeconds - before.cpuSeconds) / seconds;
  const late = lateness.end();
  const { calls, waitedMs } = await middleware.figures();
  await agent.stop();
  await middleware.stop();
  return { ...late, askedAfterMs: waitedMs, callsPerSecond: calls / seconds, coreShare };
}

const sideOf = (jobs: number) => `${jobs} jobs`;

export const latency: Measurement = {
  name: 'latency',
  needs: [],
  rounds: 3,
  goals: COUNTS.flatMap((jobs) => [
    {
      what: `from a byte at the middleware to the mirror, ${jobs} jobs that grow, polled every 2 s: median`,
      ...({ kind: 'limit', figure: 'medianMs', ours: sideOf(jobs), atMost: 1_000 } as const),
    },
    { what: 'the same: 99 %', kind: 'limit', figure: 'latest99Ms', ours: sideOf(jobs), atMost: 2_100 } as const,
    { what: 'the same: the latest', kind: 'limit', figure: 'maxMs', ours: sideOf(jobs), atMost: 2_500 } as const,
    {
      what: 'of the median, until the call that brings it',
      ...({ kind: 'limit', figure: 'askedAfterMs', ours: sideOf(jobs), atMost: 1_000 } as const),
    },
  ]),
  prepare: async (place): Promise<Prepared> => {
    const [seconds, interval] = place.quick ? [2, 1] : [20, INTERVAL_SECONDS];
    const sides = Object.fromEntries(
      COUNTS.map((jobs) => {
        const count = place.quick ? Math.ceil(jobs / 10) : jobs;
        const run = () => latencyOf(fs.mkdtempSync(path.join(place.directory, 'agent-')), count, seconds, interval);
        return [sideOf(jobs), run];
      }),
    );
    return { sides, close: async () => {} };
  },
};
