import fs from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { compareSides } from '../../simulator/demo/comparison.ts';
import { comparisonTable, differences } from '../../simulator/demo/comparison-table.ts';
import type { Sides } from '../../simulator/demo/sides.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** One task of job 501 whose two sides are equal: stdout, stderr and log, no progress, and some results. */
function equalSides(results: readonly string[] = ['results/a.dat', 'results/část/№ 1.dat', 'results/empty file']) {
  const root = temporaryDirectory();
  const cluster = path.join(root, 'cluster', '503');
  const mirror = path.join(root, 'mirror', '501');
  const write = (file: string, text: string) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  };
  for (const name of ['stdout', 'stderr', 'log']) {
    write(path.join(cluster, `${name}.txt`), `${name} of the task`);
    write(path.join(mirror, 'live', '502', `${name}.log`), `${name} of the task`);
    write(path.join(mirror, 'results', '503', `${name}.txt`), `${name} of the task`);
  }
  write(path.join(mirror, 'live', '502', 'progress.log'), '');
  for (const name of results) {
    const text = name.includes('empty') ? '' : `content of ${name}`;
    write(path.join(cluster, name), text);
    write(path.join(mirror, 'results', '503', name), text);
  }
  const files = Object.fromEntries(
    ['stdout', 'stderr', 'log', 'progress'].map((name) => [name, path.join(cluster, `${name}.txt`)]),
  ) as Sides['tasks'][number]['files'];
  const sides: Sides = {
    jobId: '501' as JobId,
    tasks: [{ taskId: '502' as TaskId, specificationId: '503', directory: cluster, files }],
    mirrorDirectory: path.join(root, 'mirror'),
  };
  return { sides, cluster, mirror };
}

describe('the comparison of both sides', () => {
  it('finds every live file and every result', async () => {
    const { sides } = equalSides();
    const comparison = await compareSides(sides);
    expect(differences(comparison)).toEqual([]);
    expect(comparison.files.map(({ name }) => name)).toEqual([
      'live/502/stdout.log',
      'live/502/stderr.log',
      'live/502/log.log',
      'live/502/progress.log',
      'results/503/log.txt',
      'results/503/results/a.dat',
      'results/503/results/empty file',
      'results/503/results/část/№ 1.dat',
      'results/503/stderr.txt',
      'results/503/stdout.txt',
    ]);
    // printf 'stdout of the task' | sha256sum
    const sha256 = 'fa5790d2abbc5e309b67a358653fbc62f886a7be9072c8ebc87bd1c23ac1db56';
    expect(comparison.files[0]).toMatchObject({ bytes: 18, cluster: sha256, mirror: sha256, equal: true });
  });

  it.each([
    ['a byte of a live mirror', 'live/502/stdout.log', 'its bytes differ'],
    ['a byte of a result', 'results/503/results/a.dat', 'its bytes differ'],
  ])('finds %s that differs', async (_, name, difference) => {
    const { sides, mirror } = equalSides();
    const file = path.join(mirror, name);
    const bytes = fs.readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(3) ^ 1, 3);
    fs.writeFileSync(file, bytes);
    expect(differences(await compareSides(sides))).toEqual([`${name}: ${difference}`]);
  });

  it.each(['live/502/stdout.log', 'live/502/progress.log', 'results/503/results/empty file'])(
    'finds that %s is missing',
    async (name) => {
      const { sides, mirror } = equalSides();
      fs.rmSync(path.join(mirror, name));
      expect(differences(await compareSides(sides))).toEqual([`${name}: it is missing here`]);
    },
  );

  it.each(['live/502/stdout.log.1', 'live/999/stdout.log', 'results/503/.jobtail-0123456789abcdef.partial', 'stray'])(
    'finds that %s should not be there',
    async (name) => {
      const { sides, mirror } = equalSides();
      fs.mkdirSync(path.dirname(path.join(mirror, name)), { recursive: true });
      fs.writeFileSync(path.join(mirror, name), 'x');
      expect(differences(await compareSides(sides))).toEqual([`${name}: the cluster has no such file`]);
    },
  );

  it('names the generations of a rewritten progress file', async () => {
    const { sides, mirror } = equalSides();
    fs.writeFileSync(path.join(mirror, 'live/502/progress.log.1'), 'before');
    const comparison = await compareSides(sides);
    expect(comparison.generations).toEqual(['live/502/progress.log.1']);
    expect(differences(comparison)).toEqual([]);
  });

  it('follows a result that is a link to the live mirror', async () => {
    const { sides, mirror } = equalSides();
    fs.rmSync(path.join(mirror, 'results/503/stdout.txt'));
    fs.symlinkSync('../../live/502/stdout.log', path.join(mirror, 'results/503/stdout.txt'));
    expect(differences(await compareSides(sides))).toEqual([]);
  });
});

describe('the table', () => {
  const linesOf = (lines: string) => stripVTControlCharacters(lines).split('\n');

  it('has a row for every file, with both digests', async () => {
    const comparison = await compareSides(equalSides().sides);
    const lines = linesOf(comparisonTable(comparison, { columns: 200, all: false }));
    expect(lines).toHaveLength(1 + comparison.files.length);
    const [stdout] = comparison.files;
    const digits = [stdout?.cluster, stdout?.mirror].map((digest) => digest?.slice(0, 12));
    expect(lines[1]?.split(/ {2,}/)).toEqual([stdout?.name, '18', ...digits, 'yes']);
  });
});
