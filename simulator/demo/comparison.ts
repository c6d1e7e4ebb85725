/** The proof at the end of the demo: every file of both sides, read from disk and compared without the agent. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { livePairs, type Sides, sizeOf, sizesBelow } from './sides.ts';

/** One file on both sides. */
export interface ComparedFile {
  /** Its path below the mirror of the job, with `/`. */
  readonly name: string;
  readonly live: boolean;
  /** Its size on the cluster, or here if it is only here. */
  readonly bytes: number;
  /** sha256 in hexadecimal; null if there is no such file. */
  readonly cluster: string | null;
  readonly mirror: string | null;
  readonly equal: boolean;
}

export interface Comparison {
  readonly files: readonly ComparedFile[];
  /** Earlier contents of `progress` that were kept, by their names as above: the cluster has nothing to compare. */
  readonly generations: readonly string[];
}

/** The job of the demo rewrites only this file, so an older generation of another one would be false. */
const GENERATION = /^live\/[^/]+\/progress\.log\.[1-9][0-9]*$/;

export async function compareSides(sides: Sides): Promise<Comparison> {
  const jobDirectory = path.join(sides.mirrorDirectory, sides.jobId);
  const pairs = new Map<string, { cluster: string | null; mirror: string }>();
  const nameOf = (mirror: string) => path.relative(jobDirectory, mirror).split(path.sep).join('/');
  for (const { cluster, mirror } of livePairs(sides)) pairs.set(nameOf(mirror), { cluster, mirror });
  for (const { specificationId, directory } of sides.tasks) {
    const results = path.join(resultsDirectory(sides.mirrorDirectory, sides.jobId), specificationId);
    for (const name of (await sizesBelow(directory)).keys()) {
      const mirror = path.join(results, name);
      pairs.set(nameOf(mirror), { cluster: path.join(directory, name), mirror });
    }
  }
  const generations: string[] = [];
  for (const name of (await sizesBelow(jobDirectory)).keys()) {
    if (GENERATION.test(name)) generations.push(name);
    else if (!pairs.has(name)) pairs.set(name, { cluster: null, mirror: path.join(jobDirectory, name) });
  }
  const files: ComparedFile[] = [];
  for (const [name, { cluster, mirror }] of pairs) files.push(await compare(name, cluster, mirror));
  // Live files first, in their own order; then the results by name.
  files.sort((a, b) => Number(b.live) - Number(a.live) || (a.live ? 0 : compareText(a.name, b.name)));
  return { files, generations: generations.sort() };
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

async function compare(name: string, clusterFile: string | null, mirrorFile: string): Promise<ComparedFile> {
  const cluster = clusterFile === null ? null : await digestOf(clusterFile);
  const mirror = await digestOf(mirrorFile);
  const live = name.startsWith('live/');
  const bytes = cluster === null ? await sizeOf(mirrorFile) : await sizeOf(clusterFile ?? mirrorFile);
  // The mirror of a live file that was never written is there, and empty.
  const neverWritten = live && clusterFile !== null && cluster === null && mirror !== null && bytes === 0;
  return { name, live, bytes, cluster, mirror, equal: neverWritten || (cluster !== null && cluster === mirror) };
}

async function digestOf(file: string): Promise<string | null> {
  const hash = createHash('sha256');
  try {
    for await (const bytes of createReadStream(file)) hash.update(bytes as Buffer);
    return hash.digest('hex');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
