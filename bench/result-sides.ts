/** What fetches result files: the agent, `curl`, and the same work in the least code. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ServiceAt, writeConfig } from './agent-config.ts';
import type { Place, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { base64In, RESULT_BLOCK_BYTES, resultDigest, resultName } from './service/answers.ts';
import { JOB_ID } from './service/job.ts';
import { type Service, startService } from './service/process.ts';
import type { Protocol } from './service/protocols.ts';
import type { LeastDone, LeastWork } from './sides/least-code.ts';
import type { SyncCost } from './sides/results.ts';

export const MIB = 1024 * 1024;
/** Files that are not removed between the runs: an ext4 without a journal takes long to find room for new ones then. */
const MANY = 100;
const sideOf = (name: string) => fileURLToPath(new URL(`./sides/${name}.js`, import.meta.url));

/** The next size that the service can serve. */
export const sized = (bytes: number) => Math.ceil(bytes / RESULT_BLOCK_BYTES) * RESULT_BLOCK_BYTES;

/** A service whose only result is this one. */
export interface ResultService extends Service {
  readonly bytes: number;
}

export async function serveResult(bytes: number, { directory }: Place): Promise<ResultService> {
  return { ...(await startService({ listed: [resultName(bytes)] }, directory)), bytes };
}

/** What our side is to bring, and how. */
interface Sync {
  readonly files: number;
  readonly bytes: number;
  readonly sha256?: string;
  readonly how?: 'once' | 'twice';
  readonly transfer?: 'service' | 'direct';
}

/** Our side: what each sync of a new agent costs, and the memory of all. @throws Error if something else arrives */
export async function synced(service: ServiceAt, wanted: Sync, { directory }: Pick<Place, 'directory'>) {
  const { how = 'once', transfer = 'service' } = wanted;
  const into = fs.mkdtempSync(path.join(directory, 'agent-'));
  const config = writeConfig(into, service, { results: { transfer } });
  const { figures, stdout } = await run(process.execPath, [...OUR_NODE_ARGS, sideOf('results'), config, JOB_ID, how]);
  const costs = JSON.parse(stdout) as readonly [SyncCost, ...SyncCost[]];
  for (const { files, bytes, sha256 } of costs) {
    const isOther = files !== wanted.files || (how === 'once' && bytes !== wanted.bytes);
    if (isOther || (wanted.sha256 ?? sha256) !== sha256)
      throw new Error(`the agent received something else: ${stdout}`);
  }
  if (wanted.files < MANY) fs.rmSync(into, { recursive: true });
  return { costs, peakBytes: figures.peakBytes };
}

/** One sync. */
export function agent(service: ServiceAt, wanted: Sync, place: Place): Side {
  return async () => {
    const { costs, peakBytes } = await synced(service, wanted, place);
    return { peakBytes, seconds: costs[0].seconds };
  };
}

/** The one result of the service. */
export function agentOf({ url, bytes }: ResultService, place: Place, protocol: Protocol = 'soap'): Side {
  return agent({ url, protocol }, { files: 1, bytes, sha256: resultDigest(bytes) }, place);
}

/** By SOAP: the file in the document. */
export function curl({ bytes, curl }: ResultService, { directory }: Place): Side {
  const words = curl('DownloadFileFromCluster', `<relativeFilePath>${resultName(bytes)}</relativeFilePath>`);
  const file = path.join(directory, 'curl.out');
  const { start, length } = base64In(bytes);
  const cut = `tail -c +${start + 1} | head -c ${length}`;
  const pipe = `file=$1; shift; "$@" | ${cut} | base64 -d > "$file" && test "$(stat -c %s "$file")" = ${bytes}`;
  return async () => {
    const figures = await runProcess('sh', ['-c', pipe, 'sh', file, ...words]);
    fs.rmSync(file);
    return figures;
  };
}

/** The work in the least code. `expected` is checked. What many files leave stays until the end, as elsewhere. */
export function leastCode(work: LeastWork, expected: Partial<LeastDone>, { directory }: Place): Side {
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'least-'));
    const file = path.join(into, 'work.json');
    fs.writeFileSync(file, JSON.stringify(work));
    const { figures, stdout } = await run(process.execPath, [sideOf('least-code'), file]);
    const done = JSON.parse(stdout) as LeastDone;
    for (const [name, value] of Object.entries(expected))
      if (done[name as keyof LeastDone] !== value) throw new Error(`the least code received something else: ${stdout}`);
    if (done.files < MANY) fs.rmSync(into, { recursive: true });
    return { ...figures, seconds: done.seconds, callMs: (done.seconds * 1000) / done.files };
  };
}
