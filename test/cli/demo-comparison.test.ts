/** The comparison that ends `agent demo` finds each kind of difference; what is equal, the demo shows (long/demo.test.ts). */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { compareSides } from '../../simulator/demo/comparison.ts';
import { differences } from '../../simulator/demo/comparison-table.ts';
import type { Sides } from '../../simulator/demo/sides.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** One task of job 501 whose two sides are equal. */
function equalSides() {
  const root = temporaryDirectory();
  const cluster = path.join(root, 'cluster', '503');
  const mirror = path.join(root, 'mirror', '501');
  const put = (file: string, text: string) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  };
  const names = ['stdout', 'stderr', 'log', 'progress'];
  const files = Object.fromEntries(names.map((name) => [name, path.join(root, `${name}.txt`)]));
  for (const name of names)
    for (const file of [files[name] ?? '', path.join(mirror, 'live', '502', `${name}.log`)]) put(file, '');
  for (const [name, text] of [
    ['a.dat', 'content'],
    ['empty file', ''],
  ] as const)
    for (const side of [cluster, path.join(mirror, 'results', '503')]) put(path.join(side, name), text);
  const task = { taskId: '502' as TaskId, specificationId: '503', directory: cluster };
  const sides = { jobId: '501' as JobId, tasks: [{ ...task, files }], mirrorDirectory: path.join(root, 'mirror') };
  return { sides: sides as unknown as Sides, put: (name: string) => put(path.join(mirror, name), 'x'), mirror };
}

it.each([
  ['live/502/stdout.log', 'its bytes differ'],
  ['results/503/a.dat', 'its bytes differ'],
  ['live/502/progress.log', 'it is missing here'],
  ['results/503/empty file', 'it is missing here'],
  ['live/502/stdout.log.1', 'the cluster has no such file'],
  ['live/999/stdout.log', 'the cluster has no such file'],
  ['results/503/.jobtail-0123456789abcdef.partial', 'the cluster has no such file'],
])('the demo names %s: %s', async (name, difference) => {
  const { sides, put, mirror } = equalSides();
  expect(differences(await compareSides(sides))).toEqual([]);
  if (difference === 'it is missing here') fs.rmSync(path.join(mirror, name));
  else put(name);
  expect(differences(await compareSides(sides))).toEqual([`${name}: ${difference}`]);
});
