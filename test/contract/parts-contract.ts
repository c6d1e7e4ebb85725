/** The contract of DownloadPartsOfJobFilesFromCluster. */
import { expect, test } from 'vitest';
import type { SandboxHabits } from '../../simulator/habits.ts';
import type { PartRequest } from '../../src/agent/ports/server.ts';
import type { LiveFileName } from '../../src/job.ts';
import { taskId as taskIdOf } from '../support/wire-remote.ts';
import { type Place, readPart, type Serve, signal } from './contract-place.ts';
import { type Dialect, RELATIVE_PATHS, type ServedTask } from './service.ts';
import { HOSTILE_TEXTS } from './texts.ts';

const want = (taskId: string, file: LiveFileName = 'stdout', offset = 0): PartRequest => ({
  taskId: taskIdOf(taskId),
  file,
  offset,
});

/** The parts in the order of `wanted`, with their texts. Nothing is refused, and nothing is there twice. */
async function read({ remote, jobId }: Place, wanted: readonly PartRequest[]) {
  const { parts, refused } = await remote.readParts(jobId, wanted, signal);
  expect(refused).toBe(0);
  const found = await Promise.all(parts.map(readPart));
  const ordered = wanted.flatMap(({ taskId, file }) =>
    found.filter((part) => part.taskId === taskId && part.file === file),
  );
  expect(ordered.length).toBe(found.length);
  return ordered;
}

/** The beginning of a text that a call cut, which names none of the files. */
async function beginningOf({ remote, jobId }: Place, wanted: readonly PartRequest[]): Promise<string> {
  const { parts, beginning } = await remote.readParts(jobId, wanted, signal);
  expect(parts).toEqual([]);
  const text = await beginning?.read(0, beginning.length);
  await beginning?.release();
  return String(text);
}

const ONE: ServedTask = { taskId: '9001', live: { stdout: 'first\nsecond\n', stderr: '' } };

export function partsContract(serve: Serve, dialect: Dialect): void {
  const { protocol, swallowsMarks } = dialect;
  // Over REST, the name in the task's directory (docs/dev/rest.md 3.1).
  const pathOf = (file: LiveFileName) => (protocol === 'soap' ? RELATIVE_PATHS[file] : RELATIVE_PATHS[file].slice(1));

  test('gives every text as it is', async () => {
    const tasks = HOSTILE_TEXTS.map((stdout, index) => ({ taskId: String(index + 1), live: { stdout } }));
    const place = await serve({ jobId: '501', tasks });
    const parts = await read(
      place,
      tasks.map(({ taskId }) => want(taskId)),
    );
    const shown = (text: string) => (swallowsMarks ? text.replace(/^\uFEFF/, '') : text);
    expect(parts.map(({ text }) => text)).toEqual(HOSTILE_TEXTS.map(shown));
  });

  test('reads no more than is enough of a text', async () => {
    // 32 bytes, so that no block edge cuts it.
    const line = `${'a line with \ufffd in it'.padEnd(29)}\n`;
    const live = { stdout: line.repeat(20_000), stderr: 'only what can be decoded\n'.repeat(20_000) };
    const place = await serve({ jobId: '501', tasks: [{ taskId: '9001', live }] });
    const enoughBytes = 100_000;
    const enough = (file: LiveFileName) => ({ ...want('9001', file), enoughBytes });
    const text = await beginningOf(place, [enough('stdout')]);
    expect(live.stdout.startsWith(text)).toBe(true);
    expect(Buffer.byteLength(text)).toBeGreaterThanOrEqual(enoughBytes);
    expect(Buffer.byteLength(text)).toBeLessThan(enoughBytes + 256 * 1024);
    expect(await read(place, [want('9001', 'stderr')])).toMatchObject([{ text: live.stderr }]);
    expect(await read(place, [enough('stdout'), want('9001', 'stderr')])).toMatchObject([
      { text: live.stdout, relativePath: pathOf('stdout') },
      { text: live.stderr },
    ]);
    const begun = await beginningOf(place, [enough('stdout'), enough('stderr')]);
    expect(Object.values(live).some((whole) => whole.startsWith(begun))).toBe(true);
  });

  test.each<[string, Partial<SandboxHabits>]>([
    ['an empty content', { emptyContent: 'empty' }],
    ['an absent content', { emptyContent: 'none' }],
    ['a nil content', { emptyContent: 'none', nullMembers: true }],
    ['no path', { relativePath: 'none' }],
    ['a nil path', { relativePath: 'none', nullMembers: true }],
    ['a nil offset', { offsetEcho: 'nil' }],
    ['the offset 0', { offsetEcho: 'zero' }],
    ['nil entries', { nilEntries: true }],
  ])('takes the answer of a server that writes %s', async (_, habits) => {
    const place = await serve({ jobId: '501', tasks: [ONE], habits });
    const relativePath = habits.relativePath === 'none' ? null : pathOf('stdout');
    expect(await read(place, [want('9001', 'stdout', 6), want('9001', 'stderr')])).toMatchObject([
      { offset: 6, text: 'second\n', relativePath },
      { text: '' },
    ]);
  });
}
