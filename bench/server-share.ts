/** The agent's share of a server that takes its time for each answer: how late bytes are, and how busy the server is kept. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LINE_BYTES } from './growth.ts';
import { Lateness } from './lateness.ts';
import type { Figures, Measurement, Place, Prepared } from './measurement.ts';
import { AgentPlace, ALL_FILES, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;
const JOBS = 20;
/** A line a second. */
const BYTES_PER_SECOND = LINE_BYTES;
/** What HEAppE V6.3.2 took for an answer on one machine with its cluster, and what a slow one takes. */
const [QUICK_MS, SLOW_MS] = [12, 400];

async function shareOf({ directory, quick }: Place, workMs: number, wholeSeconds: number): Promise<Figures> {
  const [jobs, seconds] = quick ? [4, wholeSeconds / 10] : [JOBS, wholeSeconds];
  const setting = { fileBytes: FILE_BYTES, growingBytesPerSecond: BYTES_PER_SECOND, workMs };
  const middleware = await startMiddleware(setting);
  const place = new AgentPlace(fs.mkdtempSync(path.join(directory, 'agent-')));
  place.prepare(middleware, { jobs, files: ALL_FILES, requestsPerMinute: null, concurrency: 4 });
  const agent = place.start();
  await untilAsked(agent, middleware, jobs * 3);
  await middleware.reset();
  const lateness = new Lateness(
    { startedAt: middleware.startedAt, fileBytes: FILE_BYTES, bytesPerSecond: BYTES_PER_SECOND },
    place.mirrorsOfStdout(jobs),
  );
  await sleep(seconds * 1_000);
  const { calls, busyMs } = await middleware.figures();
  const late = lateness.end();
  await agent.stop();
  await middleware.stop();
  return { ...late, callsPerSecond: calls / seconds, busyShare: busyMs / (seconds * 1_000) };
}

export const serverShare: Measurement = {
  name: 'server-share',
  needs: [],
  rounds: 3,
  goals: [
    {
      what: `${JOBS} jobs that write a line a second, a server that works ${QUICK_MS} ms on each answer: 95 % of the lines`,
      ...{ kind: 'limit', figure: 'latest95Ms', ours: 'quick', atMost: 2_000 },
    },
    {
      what: `the same jobs, a server that works ${SLOW_MS} ms on each answer: the part of the time in which it works`,
      ...{ kind: 'limit', figure: 'busyShare', ours: 'slow', atMost: 0.6 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const side = (workMs: number, seconds: number) => () => shareOf(place, workMs, seconds);
    return { sides: { quick: side(QUICK_MS, 30), slow: side(SLOW_MS, 60) }, close: async () => {} };
  },
};
