/** An agent that starts with very many watched jobs. */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figures, Measurement, Prepared } from './measurement.ts';
import { peakOf } from './processes.ts';
import { AgentPlace, ALL_FILES, startMiddleware, untilAsked } from './watching.ts';

const FILE_BYTES = 3_000;

export const manyJobs: Measurement = {
  name: 'many-jobs',
  needs: [],
  rounds: 3,
  goals: [
    {
      what: 'start with 10,000 watched jobs and 40,000 files: first poll',
      ...{ kind: 'limit', figure: 'firstPollSeconds', ours: 'agent', atMost: 2 },
    },
    {
      what: 'the same, until all were polled: memory',
      kind: 'limit',
      figure: 'peakBytes',
      ours: 'agent',
      atMost: 250e6,
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const jobs = place.quick ? 300 : 10_000;
    const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: 0 });
    const agentPlace = new AgentPlace(path.join(place.directory, 'agent'));
    agentPlace.prepare(middleware, { jobs, files: ALL_FILES, intervalSeconds: 60, requestsPerMinute: 60_000 });
    // The mirrors are there, as after any earlier start: the first poll of a job makes two calls.
    const first = agentPlace.start();
    await untilAsked(first, middleware, 2 * jobs);
    await sleep(2_000);
    await first.stop();
    const agent = async (): Promise<Figures> => {
      await middleware.reset();
      const startedAt = performance.timeOrigin + performance.now();
      const started = agentPlace.start();
      await untilAsked(started, middleware, jobs);
      await sleep(1_000);
      const peakBytes = peakOf(started.pid);
      await started.stop();
      const { firstCallAt } = await middleware.figures();
      return { firstPollSeconds: ((firstCallAt ?? Number.NaN) - startedAt) / 1000, peakBytes };
    };
    return { sides: { agent }, close: () => middleware.stop() };
  },
};
