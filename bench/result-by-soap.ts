/** One large result file by SOAP. */
import type { Measurement, Side } from './measurement.ts';
import { agent, curl, leastOf, MIB, type ResultService, serveResult, sized } from './result-sides.ts';
import { warmDisk } from './warm-disk.ts';

const against = (peer: string) => `a 512 MiB result by SOAP, to a synced file with sha256, against ${peer}`;

export const resultBySoap: Measurement = {
  name: 'result',
  needs: ['curl', 'base64', 'tail', 'head'],
  goals: [
    {
      kind: 'ratio',
      what: against('`curl`, cut, `base64 -d`'),
      figure: 'seconds',
      ours: 'agent',
      peer: 'base64',
      atMost: 1.1,
    },
    { kind: 'ratio', what: against('bare `curl -o`'), figure: 'seconds', ours: 'agent', peer: 'curl', atMost: 2.8 },
    {
      kind: 'ratio',
      what: against('the least code for the same work'),
      ...{ figure: 'seconds', ours: 'agent', peer: 'least', atMost: 1.3 },
    },
  ],
  prepare: async (place) => {
    const bytes = sized(place.quick ? 24 * MIB : 512 * MIB);
    const service = await serveResult(bytes, 'plain', place);
    const { bare, decoded } = curl(service, place);
    return {
      sides: { agent: agent(service, place), least: leastOf(service, place), base64: decoded, curl: bare },
      before: () => warmDisk(place.directory, bytes),
      close: () => service.stop(),
    };
  },
};

const SIZES = ['64 MiB', '512 MiB', '4 GiB'];

export const resultMemory: Measurement = {
  name: 'result-memory',
  needs: [],
  goals: [
    ...SIZES.map((size) => ({
      kind: 'limit' as const,
      what: `peak memory of a ${size} result by SOAP`,
      ...{ figure: 'peakBytes', ours: size, atMost: 160e6 },
    })),
    {
      kind: 'flat',
      what: `peak memory at ${SIZES.join(', ')}: largest by smallest`,
      figure: 'peakBytes',
      sides: SIZES,
      atMost: 1.2,
    },
  ],
  prepare: async (place) => {
    const sizes = place.quick ? [3 * MIB, 12 * MIB, 48 * MIB] : [64 * MIB, 512 * MIB, 4096 * MIB];
    const services: ResultService[] = [];
    const sides: Record<string, Side> = {};
    for (const [index, size] of SIZES.entries()) {
      const service = await serveResult(sized(sizes[index] ?? 0), 'plain', place);
      services.push(service);
      sides[size] = agent(service, place);
    }
    return { sides, close: async () => void (await Promise.all(services.map((service) => service.stop()))) };
  },
};
