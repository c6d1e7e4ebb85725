/** What the view costs a running agent: while no page is open, and with ten pages, whose streams look ten times a second. */

import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../test/support/free-port.ts';
import type { Figures, Measurement, Prepared } from './measurement.ts';
import { usageOf } from './processes.ts';
import { AgentPlace, startMiddleware, untilAsked } from './watching.ts';

const JOBS = 10;
const VIEWERS = 10;
const FILE_BYTES = 3_000;
const BYTES_PER_SECOND = 10_000;

export const viewers: Measurement = {
  name: 'viewers',
  needs: [],
  goals: [
    {
      what: 'ten pages that look ten times a second at ten logs growing by 10 KB/s, polled every second: of one core, more than without them',
      ...{ kind: 'limit', figure: 'viewedShare', ours: 'agent', atMost: 0.03 },
    },
    {
      what: 'ten such pages of logs that do not grow: of one core, more than without them',
      ...{ kind: 'limit', figure: 'quietShare', ours: 'agent', atMost: 0.02 },
    },
    {
      what: 'the view without an open page: of one core, more than without it',
      ...{ kind: 'limit', figure: 'idleShare', ours: 'agent', atMost: 0.003 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const seconds = place.quick ? 3 : 60;
    const directory = () => fs.mkdtempSync(path.join(place.directory, 'agent-'));
    return { sides: { agent: () => measured(directory, seconds) }, close: async () => {} };
  },
};

async function measured(directory: () => string, seconds: number): Promise<Figures> {
  const without = await sharesOf(directory(), seconds, { hasView: false, bytesPerSecond: BYTES_PER_SECOND });
  const within = await sharesOf(directory(), seconds, { hasView: true, bytesPerSecond: BYTES_PER_SECOND });
  const quiet = await sharesOf(directory(), seconds, { hasView: true, bytesPerSecond: 0 });
  return {
    idleShare: within.alone - without.alone,
    viewedShare: within.viewed - within.alone,
    quietShare: quiet.viewed - quiet.alone,
  };
}

interface Shares {
  /** Of one core: nobody looks, and ten pages do. */
  readonly alone: number;
  readonly viewed: number;
}

interface Setting {
  readonly hasView: boolean;
  readonly bytesPerSecond: number;
}

async function sharesOf(directory: string, seconds: number, { hasView, bytesPerSecond }: Setting): Promise<Shares> {
  const middleware = await startMiddleware({ fileBytes: FILE_BYTES, growingBytesPerSecond: bytesPerSecond });
  const place = new AgentPlace(directory);
  const port = await freePort();
  const view = hasView ? { view: { listen: `127.0.0.1:${port}` } } : {};
  place.prepare(middleware, { jobs: JOBS, files: ['stdout'], intervalSeconds: 1, requestsPerMinute: 60_000, ...view });
  const agent = place.start();
  await untilAsked(agent, middleware, JOBS * 5);
  const share = async () => {
    const before = usageOf(agent.pid).cpuSeconds;
    await sleep(seconds * 1000);
    return (usageOf(agent.pid).cpuSeconds - before) / seconds;
  };
  const alone = await share();
  const pages = hasView ? followAll(port, place.viewToken) : undefined;
  await sleep(3_000);
  const viewed = hasView ? await share() : alone;
  pages?.abort();
  await agent.stop();
  await middleware.stop();
  if (pages !== undefined && pages.taken() < VIEWERS * Math.max(FILE_BYTES, bytesPerSecond * seconds * 0.5))
    throw new Error('the pages did not follow');
  return { alone, viewed };
}

/** Pages that have the list of jobs and one log each open, and take what comes of it. */
function followAll(port: number, token: string) {
  const over = new AbortController();
  const ask = (address: string) =>
    fetch(`http://127.0.0.1:${port}/api/${address}`, {
      headers: { authorization: `Bearer ${token}` },
      signal: over.signal,
    });
  let taken = 0;
  const follow = async (job: number) => {
    const { body } = await ask(`events?jobs=1&job=${job}&file=${job}/${job}/stdout`);
    let at = 0;
    for await (const piece of body ?? []) {
      const said = /"version":"g\d+","bytes":(\d+)\}/.exec(new TextDecoder().decode(piece))?.[1];
      if (said === undefined || Number(said) <= at) continue;
      const answer = await ask(`lines?job=${job}&task=${job}&file=stdout&at=${at}`);
      const { byteLength } = await answer.arrayBuffer();
      at += byteLength;
      taken += byteLength;
    }
  };
  for (let job = 1; job <= VIEWERS; job++) follow(job).catch(() => {});
  return { taken: () => taken, abort: () => over.abort() };
}
