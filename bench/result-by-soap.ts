/** One large result file by SOAP. */
import fs from 'node:fs';
import path from 'node:path';
import type { Measurement, Place, Side } from './measurement.ts';
import { run } from './processes.ts';
import { agent, curl, leastOf, MIB, type ResultService, serveResult, sideOf, sized } from './result-sides.ts';
import { resultDigest, resultName } from './service/answers.ts';
import { warmDisk } from './warm-disk.ts';

function soapPackage({ url, bytes, layout }: ResultService, { directory }: Place): Side {
  const expected = `${bytes} ${resultDigest(bytes)}`;
  return async () => {
    const args = [sideOf('soap-package'), url, resultName(bytes, layout), directory];
    const { figures, stdout } = await run(process.execPath, args);
    fs.rmSync(path.join(directory, 'package.dat'));
    const [received, seconds] = stdout.trim().split('; ');
    if (received !== expected) throw new Error(`the package received something else: ${stdout}`);
    return { ...figures, seconds: Number(seconds) };
  };
}

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

/** The largest size that the package survives: the base64 of more is no string any more. */
export const resultByPackage: Measurement = {
  name: 'result-package',
  needs: [],
  goals: [
    {
      kind: 'ratio',
      what: 'a 256 MiB result by SOAP against the `soap` package (fails from 384 MiB on)',
      ...{ figure: 'seconds', ours: 'agent', peer: 'package', atMost: 0.15 },
    },
  ],
  prepare: async (place) => {
    const bytes = sized(place.quick ? 12 * MIB : 256 * MIB);
    const service = await serveResult(bytes, 'plain', place);
    return {
      sides: { agent: agent(service, place), package: soapPackage(service, place) },
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
