/** Very many small results by SOAP: what a call costs, and a look at a long listing in which nothing is due. */
import fs from 'node:fs';
import path from 'node:path';
import { writeConfig } from './agent-config.ts';
import type { Figures, Measurement, Place, Prepared, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { leastCode, sideOf } from './result-sides.ts';
import { SMALL_RESULT_BYTES, smallNames } from './service/answers.ts';
import { JOB_ID } from './service/job.ts';
import { type Service, startService } from './service/process.ts';
import type { SyncCost } from './sides/many-results.ts';

const CONCURRENCIES = [1, 4];

/** What two syncs cost, the second one over what the first one left. */
async function syncs(config: string, kind: 'cold' | 'quiet'): Promise<readonly [SyncCost, SyncCost]> {
  const { stdout } = await run(process.execPath, [...OUR_NODE_ARGS, sideOf('many-results'), config, JOB_ID, kind]);
  return JSON.parse(stdout) as [SyncCost, SyncCost];
}

function agent(service: Service, concurrency: number, count: number, { directory }: Place): Side {
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'agent-'));
    const config = writeConfig(into, { ...service, concurrency }, { results: { transfer: 'service' } });
    const [cold, again] = await syncs(config, 'cold');
    if (cold.files !== count || again.files !== count) throw new Error(`${cold.files} of ${count} results came`);
    const a = (seconds: number) => (seconds * 1000) / count;
    return {
      callMs: a(cold.seconds),
      unchangedCallMs: a(again.seconds),
      cpuMs: a(cold.cpuSeconds),
      unchangedCpuMs: a(again.cpuSeconds),
      longestBlockMs: Math.max(cold.longestBlockMs, again.longestBlockMs),
    };
  };
}

/** A process for each call, one after the other; a tenth of the files, for each costs the same. */
function curlLoop(service: Service, count: number, { directory }: Place): Side {
  const calls = Math.ceil(count / 10);
  const words = service.curl('DownloadFileFromCluster', '<relativeFilePath>/part-0/file-0.small</relativeFilePath>');
  const script = 'calls=$1; shift; while [ $calls -gt 0 ]; do "$@"; calls=$((calls - 1)); done';
  const args = ['-c', script, 'sh', String(calls), ...words, '-o', path.join(directory, 'curl.out')];
  return async () => {
    const { seconds, cpuSeconds } = await runProcess('sh', args);
    return { callMs: (seconds * 1000) / calls, cpuMs: (cpuSeconds * 1000) / calls };
  };
}

const ours = (concurrency: number) => `agent, ${concurrency} at a time`;
const LEAST = 'least code, 4 at a time';
const ratio = { kind: 'ratio', figure: 'callMs' } as const;

export const manyResults: Measurement = {
  name: 'many-results',
  needs: ['curl'],
  rounds: 3,
  goals: [
    {
      ...{ ...ratio, ours: ours(1), peer: 'curl', atMost: 0.5 },
      what: 'one of 5,000 results of 20 KB by SOAP, flushed, against a shell loop of `curl`: 1 call at a time',
    },
    {
      what: 'the same, against the least code for the same work, 4 calls at a time',
      ...{ ...ratio, ours: ours(4), peer: LEAST, atMost: 1.5 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const count = place.quick ? 200 : 5_000;
    const service = await startService({ listed: smallNames(count) }, place.directory);
    const sides: Record<string, Side> = {};
    for (const concurrency of CONCURRENCIES) {
      sides[ours(concurrency)] = agent(service, concurrency, count, place);
    }
    const work = {
      url: service.url,
      protocol: 'soap',
      names: smallNames(count),
      callsAtATime: 4,
      isWrapped: false,
    } as const;
    sides[LEAST] = leastCode(work, { files: count, bytes: count * SMALL_RESULT_BYTES }, place);
    sides['curl'] = curlLoop(service, count, place);
    return { sides, close: () => service.stop() };
  },
};

export const longListing: Measurement = {
  name: 'long-listing',
  needs: [],
  goals: [
    {
      what: 'a sync of 100,000 listed names, none of them due: processor time',
      ...{ kind: 'limit', figure: 'cpuSeconds', ours: 'agent', atMost: 1 },
    },
    {
      what: 'longest block of the event loop in it',
      ...{ kind: 'limit', figure: 'longestBlockMs', ours: 'agent', atMost: 50 },
    },
  ],
  prepare: async (place): Promise<Prepared> => {
    const names = smallNames(place.quick ? 2_000 : 100_000);
    const service = await startService({ listed: names }, place.directory);
    const look = async (): Promise<Figures> => {
      const into = fs.mkdtempSync(path.join(place.directory, 'agent-'));
      const [first, second] = await syncs(writeConfig(into, service, { results: { transfer: 'service' } }), 'quiet');
      fs.rmSync(into, { recursive: true });
      if (first.files + second.files > 0) throw new Error('something was due');
      return { ...second };
    };
    return { sides: { agent: look }, close: () => service.stop() };
  },
};
