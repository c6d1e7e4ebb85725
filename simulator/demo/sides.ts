/** The two sides of the demo: the files of the job on the simulated cluster, and the mirrors of the agent. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../src/agent/results/results.ts';
import { type JobId, LIVE_FILE_NAMES } from '../../src/job.ts';
import { isPartialName } from '../../src/safe-names.ts';
import type { SubmittedTask } from '../cluster/cluster.ts';

export interface Sides {
  readonly jobId: JobId;
  readonly tasks: readonly Pick<SubmittedTask, 'taskId' | 'specificationId' | 'directory' | 'files'>[];
  readonly mirrorDirectory: string;
}

/** The live files, each by its paths on both sides. */
export function livePairs({ jobId, tasks, mirrorDirectory }: Sides) {
  return tasks.flatMap(({ taskId, files }) =>
    LIVE_FILE_NAMES.map((file) => ({
      taskId,
      file,
      cluster: files[file],
      mirror: mirrorPath(mirrorDirectory, jobId, { taskId, file }),
    })),
  );
}

/** The files below a directory with their sizes, by their path with `/`; none if there is no such directory. */
export async function sizesBelow(directory: string): Promise<Map<string, number>> {
  const entries = await fs.readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = new Map<string, number>();
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    const file = path.join(entry.parentPath, entry.name);
    sizes.set(path.relative(directory, file).split(path.sep).join('/'), await sizeOf(file));
  }
  return sizes;
}

/** 0 if there is no such file. */
export async function sizeOf(file: string): Promise<number> {
  return fs.stat(file).then(
    (stat) => stat.size,
    () => 0,
  );
}

/** How much of what the cluster has is here. */
export interface Growth {
  readonly title: string;
  readonly files: { readonly here: number; readonly cluster: number };
  readonly bytes: { readonly here: number; readonly cluster: number };
}

/** First the live files, then the results of each task. */
export async function growths(sides: Sides): Promise<Growth[]> {
  const results = sides.tasks.map(async ({ taskId, specificationId, directory }) => {
    const here = await sizesBelow(path.join(resultsDirectory(sides.mirrorDirectory, sides.jobId), specificationId));
    for (const name of here.keys()) if (isPartialName(path.posix.basename(name))) here.delete(name);
    const cluster = await sizesBelow(directory);
    return growthOf(`results of ${taskId}`, [...here.values()], [...cluster.values()]);
  });
  return [await liveGrowth([sides]), ...(await Promise.all(results))];
}

/** Of all live files. */
export async function liveGrowth(sides: readonly Sides[]): Promise<Growth> {
  const pairs = sides.flatMap(livePairs);
  const here = await Promise.all(pairs.map(({ mirror }) => sizeOf(mirror)));
  const cluster = await Promise.all(pairs.map((pair) => sizeOf(pair.cluster)));
  return growthOf('live files', here, cluster);
}

function growthOf(title: string, here: readonly number[], cluster: readonly number[]): Growth {
  return {
    title,
    files: { here: here.length, cluster: cluster.length },
    bytes: { here: sum(here), cluster: sum(cluster) },
  };
}

export const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
