/** Very many small results by SOAP: what a call costs. */
import path from 'node:path';
import type { Measurement, Place, Prepared, Side } from './measurement.ts';
import { runProcess } from './processes.ts';
import { leastCode, synced } from './result-sides.ts';
import { SMALL_RESULT_BYTES, smallNames } from './service/answers.ts';
import { type Service, startService } from './service/process.ts';

const CONCURRENCIES = [1, 4];

function agent(service: Service, concurrency: number, files: number, place: Place): Side {
  const wanted = { files, bytes: files * SMALL_RESULT_BYTES, how: 'twice' } as const;
  return async () => {
    const { costs } = await synced({ ...service, concurrency }, wanted, place);
    const [cold, again] = costs.map(({ seconds, cpuSeconds }) => ({
      callMs: (seconds * 1000) / files,
      cpuMs: (cpuSeconds * 1000) / files,
    }));
    return { ...cold, unchangedCallMs: again?.callMs ?? Number.NaN, unchangedCpuMs: again?.cpuMs ?? Number.NaN };
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
    const work = { url: service.url, names: smallNames(count), callsAtATime: 4 };
    sides[LEAST] = leastCode(work, { files: count, bytes: count * SMALL_RESULT_BYTES }, place);
    sides['curl'] = curlLoop(service, count, place);
    return { sides, close: () => service.stop() };
  },
};
