/** One large result file: by SOAP beside `curl` and the least code, by REST beside SOAP, and the memory that it takes. */
import type { Measurement, Side } from './measurement.ts';
import { agentOf, curl, leastCode, MIB, type ResultService, serveResult, sized } from './result-sides.ts';
import { warmDisk } from './rounds.ts';
import { resultDigest, resultName } from './service/answers.ts';

const against = (peer: string) => `a 512 MiB result by SOAP, to a synced file with sha256, against ${peer}`;
const ratio = { kind: 'ratio', figure: 'seconds', ours: 'agent' } as const;
const memory = { kind: 'limit', figure: 'peakBytes', atMost: 160e6 } as const;

export const result: Measurement = {
  name: 'result',
  needs: ['curl', 'base64', 'tail', 'head'],
  goals: [
    { ...ratio, what: against('`curl`, cut, `base64 -d`'), peer: 'base64', atMost: 1.1 },
    { ...ratio, what: against('the least code for the same work'), peer: 'least', atMost: 1.3 },
    { ...ratio, what: 'a 512 MiB result by REST, against the same by SOAP', ours: 'rest', peer: 'agent', atMost: 1 },
    { ...memory, what: 'peak memory of a 512 MiB result by REST', ours: 'rest' },
  ],
  prepare: async (place) => {
    const bytes = sized(place.quick ? 24 * MIB : 512 * MIB);
    const service = await serveResult(bytes, place);
    const decoded = curl(service, place);
    const least = leastCode(
      { url: service.url, names: [resultName(bytes)], callsAtATime: 1 },
      { bytes, sha256: resultDigest(bytes) },
      place,
    );
    return {
      sides: {
        agent: agentOf(service, place),
        rest: agentOf(service, place, 'rest'),
        least,
        base64: decoded,
      },
      before: () => warmDisk(place.directory, bytes),
      close: () => service.stop(),
    };
  },
};

const SIZES = { '64 MiB': [3, 64], '4 GiB': [48, 4096] } as const;

export const resultMemory: Measurement = {
  name: 'result-memory',
  needs: [],
  goals: Object.keys(SIZES).map((size) => ({ ...memory, what: `peak memory of a ${size} result by SOAP`, ours: size })),
  prepare: async (place) => {
    const services: ResultService[] = [];
    const sides: Record<string, Side> = {};
    for (const [size, [quickMib, mib]] of Object.entries(SIZES)) {
      const service = await serveResult(sized((place.quick ? quickMib : mib) * MIB), place);
      services.push(service);
      sides[size] = agentOf(service, place);
    }
    return { sides, close: async () => void (await Promise.all(services.map((service) => service.stop()))) };
  },
};
