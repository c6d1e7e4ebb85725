/** What fetches one large result file: the agent, `curl`, and the same work in the least code. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeConfig } from './agent-config.ts';
import type { Figures, Place, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { base64In, type Layout, RESULT_BLOCK_BYTES, resultDigest, resultName } from './service/answers.ts';
import { JOB_ID } from './service/job.ts';
import { type Service, startService } from './service/process.ts';
import type { Protocol } from './service/protocols.ts';
import type { LeastDone, LeastWork } from './sides/least-code.ts';
import type { SyncFigures } from './sides/sync-results.ts';

export const MIB = 1024 * 1024;
/** Files that are not removed between the runs: an ext4 without a journal takes long to find room for new ones then. */
export const MANY = 100;
export const sideOf = (name: string) => fileURLToPath(new URL(`./sides/${name}.js`, import.meta.url));

/** The next size that the service can serve. */
export const sized = (bytes: number) => Math.ceil(bytes / RESULT_BLOCK_BYTES) * RESULT_BLOCK_BYTES;

/** A service whose only result is this one. */
export interface ResultService extends Service {
  readonly bytes: number;
  readonly layout: Layout;
}

export async function serveResult(bytes: number, layout: Layout, { directory }: Place): Promise<ResultService> {
  const service = await startService({ listed: [resultName(bytes, layout)] }, directory);
  return { ...service, bytes, layout };
}

/** Our side: what the service lists. */
export function agent({ url, bytes }: ResultService, { directory }: Place, protocol: Protocol = 'soap'): Side {
  const sha256 = resultDigest(bytes);
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'agent-'));
    const config = writeConfig(into, { url, protocol }, { results: { transfer: 'service' } });
    const { figures, stdout } = await run(process.execPath, [...OUR_NODE_ARGS, sideOf('sync-results'), config, JOB_ID]);
    fs.rmSync(into, { recursive: true });
    const synced = JSON.parse(stdout) as SyncFigures;
    if (synced.bytes !== bytes || synced.sha256 !== sha256)
      throw new Error(`the agent received something else: ${stdout}`);
    return { ...figures, seconds: synced.seconds };
  };
}

/** By SOAP: the document as it comes, and the file in it. */
export function curl({ bytes, layout, curl }: ResultService, { directory }: Place): { bare: Side; decoded: Side } {
  const name = resultName(bytes, layout);
  const words = curl('DownloadFileFromCluster', `<relativeFilePath>${name}</relativeFilePath>`);
  const file = path.join(directory, 'curl.out');
  const cleared = async (side: Promise<Figures>) => {
    const figures = await side;
    fs.rmSync(file);
    return figures;
  };
  const { start, length } = base64In(bytes, layout);
  // It takes line feeds for nothing, but not carriage returns.
  const decode = layout === 'wrapped' ? 'base64 -di' : 'base64 -d';
  const cut = `tail -c +${start + 1} | head -c ${length}`;
  const pipe = `file=$1; shift; "$@" | ${cut} | ${decode} > "$file" && test "$(stat -c %s "$file")" = ${bytes}`;
  return {
    bare: () => cleared(runProcess('curl', [...words.slice(1), '-o', file])),
    decoded: () => cleared(runProcess('sh', ['-c', pipe, 'sh', file, ...words])),
  };
}

/** Whatever work in the least code. `expected` is checked. What many files leave stays until the end, as elsewhere. */
export function leastCode(
  work: LeastWork,
  expected: Partial<LeastDone>,
  { directory }: Pick<Place, 'directory'>,
): Side {
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

/** One large result by it. */
export function leastOf({ url, bytes, layout }: ResultService, place: Place, protocol: Protocol = 'soap'): Side {
  const names = [resultName(bytes, layout)];
  const work = { url, protocol, names, callsAtATime: 1, isWrapped: layout === 'wrapped' };
  return leastCode(work, { bytes, sha256: resultDigest(bytes) }, place);
}
