import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { demoJob } from '../../../simulator/demo/demo-job.ts';
import { type DemoNames, type DemoTask, runDemoTask } from '../../../simulator/demo/demo-work.ts';
import { temporaryDirectory } from '../support.ts';

/** Runs a task; says how often its stdout ended inside of a character. */
async function run(task: DemoTask, seed: number, demoNames: DemoNames = 'any') {
  const directory = join(await temporaryDirectory(), task);
  await mkdir(directory);
  let cuts = 0;
  const write = (name: string) => (bytes: Buffer) => {
    if (!bytes.equals(Buffer.from(bytes.toString('utf8')))) cuts += 1;
    appendFileSync(join(directory, name), bytes);
  };
  await runDemoTask(task, {
    directory,
    stdout: write('stdout.txt'),
    stderr: write('stderr.txt'),
    pause: async () => {},
    steps: 30,
    seed,
    names: demoNames,
  });
  const names = (await readdir(directory, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const files = new Map<string, Buffer>();
  for (const name of names) files.set(name.slice(directory.length + 1), await readFile(name));
  return { files, cuts };
}

/** Comparing megabytes is slow, and a difference would be no pleasure to read. */
function digests({ files }: Awaited<ReturnType<typeof run>>) {
  return [...files].map(([name, bytes]) => [name, createHash('sha256').update(bytes).digest('hex')]);
}

describe('the tasks of the demo', () => {
  it('write the same bytes for the same seed', async () => {
    for (const task of ['languages', 'progress'] as const) {
      const first = digests(await run(task, 1));
      expect(digests(await run(task, 1))).toEqual(first);
      expect(digests(await run(task, 2))).not.toEqual(first);
    }
  });

  it('write valid text in pieces cut inside of characters, with colours, and small results with odd names', async () => {
    const { files, cuts } = await run('languages', 1);
    const text = files.get('stdout.txt') ?? Buffer.alloc(0);
    expect(cuts).toBeGreaterThan(5);
    expect(Buffer.from(text.toString('utf8'))).toEqual(text);
    for (const part of ['žluťoučký', 'Ξεσκεπάζω', 'いろは', 'حكيم', '🚀', '\u001b[31m']) {
      expect(text.toString()).toContain(part);
    }
    expect(files.get('results/summary/empty file')).toHaveLength(0);
    expect([...files.keys()].filter((name) => name.startsWith('results/část')).length).toBeGreaterThanOrEqual(10);
    expect([...files.keys()]).toEqual(expect.arrayContaining(['stderr.txt', 'task.log']));
  });

  it('write CRLF, CR progress bars, a progress file and large results', async () => {
    const { files } = await run('progress', 1);
    expect(files.get('stdout.txt')?.toString()).toContain('iteration 30\r\n');
    expect(files.get('stderr.txt')?.toString()).toContain('\r[█████████████████████████] 100 %');
    expect(files.get('progress.txt')?.toString()).toMatch(/^a new stage begins\n/);
    const large = ['α', 'β'].map((name) => files.get(`results/výstup/large result ${name}.bin`)?.length ?? 0);
    expect(large.reduce((sum, size) => sum + size)).toBeGreaterThanOrEqual(4_000_000);
  });

  it.each([
    ['plain', /^(?:results\/)?[A-Za-z0-9_./ ~-]+$/],
    ['flat', /^[A-Za-z0-9_. ~-]+$/],
  ] as const)('write as many results with %s names, which REST takes', async (names, expected) => {
    for (const task of ['languages', 'progress'] as const) {
      const [any, others] = [await run(task, 1), await run(task, 1, names)];
      expect(others.files.size).toBe(any.files.size);
      for (const name of others.files.keys()) {
        expect(name).toMatch(expected);
        // With the ids of a job and a task before it, the shortest limit is 50 (docs/dev/rest.md 3.4).
        if (names === 'flat') expect(name.length).toBeLessThanOrEqual(50 - '/501/503///'.length);
      }
    }
  });

  it('are two processes of one job', async () => {
    const { tasks } = demoJob({ seconds: 2 });
    expect(tasks.map(({ command }) => command?.slice(2))).toEqual([
      ['languages', '2', 'any', '1'],
      ['progress', '2', 'any', '1'],
    ]);
    const program = tasks[0]?.command?.[1] ?? '';
    expect((await stat(program)).isFile()).toBe(true);
  });
});
