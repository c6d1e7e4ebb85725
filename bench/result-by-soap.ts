/** One large result file by SOAP. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeConfig } from './agent-config.ts';
import type { Figures, Measurement, Place, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { BYTES_BEFORE_RESULT, JOB_ID, RESULT_BLOCK_BYTES, resultDigest } from './service/answers.ts';
import { type Service, startService } from './service/process.ts';
import type { SyncFigures } from './sides/sync-results.ts';
import { warmDisk } from './warm-disk.ts';

const MIB = 1024 * 1024;
const sideOf = (name: string) => fileURLToPath(new URL(`./sides/${name}.js`, import.meta.url));

/** The next size that the service can serve. */
const sized = (bytes: number) => Math.ceil(bytes / RESULT_BLOCK_BYTES) * RESULT_BLOCK_BYTES;

/** Our side: what the service lists. */
function agent(service: Service, bytes: number, { directory }: Place): Side {
  const sha256 = resultDigest(bytes);
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'agent-'));
    const config = writeConfig(into, service.url, { results: { transfer: 'soap' } });
    const { figures, stdout } = await run(process.execPath, [...OUR_NODE_ARGS, sideOf('sync-results'), config, JOB_ID]);
    fs.rmSync(into, { recursive: true });
    const synced = JSON.parse(stdout) as SyncFigures;
    if (synced.bytes !== bytes || synced.sha256 !== sha256)
      throw new Error(`the agent received something else: ${stdout}`);
    return { ...figures, seconds: synced.seconds };
  };
}

function soapPackage(service: Service, bytes: number, { directory }: Place): Side {
  const expected = `${bytes} ${resultDigest(bytes)}`;
  return async () => {
    const args = [sideOf('soap-package'), service.url, `/${bytes}.dat`, directory];
    const { figures, stdout } = await run(process.execPath, args);
    fs.rmSync(path.join(directory, 'package.dat'));
    const [received, seconds] = stdout.trim().split('; ');
    if (received !== expected) throw new Error(`the package received something else: ${stdout}`);
    return { ...figures, seconds: Number(seconds) };
  };
}

function curl(service: Service, bytes: number, { directory }: Place): { bare: Side; decoded: Side } {
  const words = service.curl(
    directory,
    'DownloadFileFromCluster',
    `<relativeFilePath>/${bytes}.dat</relativeFilePath>`,
  );
  const file = path.join(directory, 'curl.out');
  const cleared = async (side: Promise<Figures>) => {
    const figures = await side;
    fs.rmSync(file);
    return figures;
  };
  const cut = `tail -c +${BYTES_BEFORE_RESULT + 1} | head -c ${(bytes / 3) * 4}`;
  const pipe = `file=$1; shift; "$@" | ${cut} | base64 -d > "$file" && test "$(stat -c %s "$file")" = ${bytes}`;
  return {
    bare: () => cleared(runProcess('curl', [...words.slice(1), '-o', file])),
    decoded: () => cleared(runProcess('sh', ['-c', pipe, 'sh', file, ...words])),
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
      atMost: 0.6,
    },
    { kind: 'ratio', what: against('bare `curl -o`'), figure: 'seconds', ours: 'agent', peer: 'curl', atMost: 2 },
  ],
  prepare: async (place) => {
    const bytes = sized(place.quick ? 24 * MIB : 512 * MIB);
    const service = await startService({ listed: [`/${bytes}.dat`] }, place.directory);
    const { bare, decoded } = curl(service, bytes, place);
    return {
      sides: { agent: agent(service, bytes, place), base64: decoded, curl: bare },
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
    const service = await startService({ listed: [`/${bytes}.dat`] }, place.directory);
    return {
      sides: {
        agent: agent(service, bytes, place),
        package: soapPackage(service, bytes, place),
      },
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
    const services: Service[] = [];
    const sides: Record<string, Side> = {};
    for (const [index, size] of SIZES.entries()) {
      const bytes = sized(sizes[index] ?? 0);
      const service = await startService({ listed: [`/${bytes}.dat`] }, place.directory);
      services.push(service);
      sides[size] = agent(service, bytes, place);
    }
    return { sides, close: async () => void (await Promise.all(services.map((service) => service.stop()))) };
  },
};
