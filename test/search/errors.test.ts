/** What looks like an error, and which errors are alike. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { type ErrorProgress, errorsIn, groupsOf, likenessOf } from '../../src/search/errors.ts';
import { hasMirrors, lossOf, type MirrorChoice, mirrorsIn } from '../../src/search/mirrors.ts';
import { textsIn } from '../../src/search/texts.ts';
import { expectCases } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** The errors of mirrors, given by job, task and name. */
async function errorsOf(mirrors: Readonly<Record<string, string>>, patterns: readonly string[] | null = null) {
  const directory = temporaryDirectory();
  for (const [key, content] of Object.entries(mirrors)) {
    const [job = '', task = '', name = ''] = key.split('/');
    const file = path.join(directory, job, 'live', task, `${name}.log`);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  }
  const unreadable: string[] = [];
  const onUnreadable = (error: string) => unreadable.push(error);
  const found: ErrorProgress[] = [];
  for await (const progress of errorsIn({ files: mirrorsIn(directory, { jobs: [] }), patterns, onUnreadable }))
    found.push(progress);
  expect(unreadable).toEqual([]);
  return [...(found.at(-1)?.tasks.values() ?? [])];
}

it('mirrors are in directories only: none is found of a job without one, or behind a link', () => {
  const directory = temporaryDirectory();
  const live = (job: string) => path.join(directory, job, 'live');
  fs.mkdirSync(path.join(live('1'), '9'), { recursive: true });
  fs.writeFileSync(path.join(live('1'), '9', 'stdout.log'), 'text');
  for (const job of ['2', '3']) fs.mkdirSync(path.join(directory, job));
  fs.symlinkSync(live('1'), live('3'));
  fs.symlinkSync(path.join(directory, '1'), path.join(directory, '4'));
  expect(mirrorsIn(directory, { jobs: [] }).map(({ jobId }) => jobId)).toEqual(['1']);
  expect(['1', '2', '3', '5'].map((job) => hasMirrors(directory, job as JobId))).toEqual([true, false, false, false]);
});

it.each([
  ['gone', undefined, 5, 'task 9 log: its mirror is gone (agent sync 1)'],
  ['cut', 'text', 5, 'task 9 log: its mirror has only 4 of 5 bytes (agent sync 1)'],
  ['whole', 'text', 4, undefined],
  ['empty and gone', undefined, 0, undefined],
])('a mirror that is %s is reported as lost, or is not', (_, content, bytes, line) => {
  const mirror = path.join(temporaryDirectory(), 'log.log');
  if (content !== undefined) fs.writeFileSync(mirror, content);
  expect(lossOf('1' as JobId, { taskId: '9' as TaskId, file: 'log', path: mirror, bytes })).toBe(line);
});

it('the search for errors begins with failed jobs and small tasks, and ends in the order of the files', async () => {
  const directory = temporaryDirectory();
  for (const [task, length] of [
    [1, 9],
    [2, 1],
    [3, 5],
  ] as const)
    for (const job of ['1', '2']) {
      const file = path.join(directory, job, 'live', String(task), 'log.log');
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, 'killed\n'.repeat(length));
    }
  const files = mirrorsIn(directory, { jobs: [] });
  fs.rmSync(path.join(directory, '1/live/3/log.log'));
  const unreadable: string[] = [];
  const onUnreadable = (error: string) => unreadable.push(error);
  const orders: string[] = [];
  for await (const { tasks, ...counts } of errorsIn({
    files,
    patterns: null,
    isFailed: (job) => job === '2',
    onUnreadable,
  }))
    orders.push(`${counts.filesDone}/${counts.files} ${[...tasks.keys()]}`);
  const grown = ['2/2', '2/2,2/3', '2/2,2/3,2/1', '2/2,2/3,2/1,1/2', '2/2,2/3,2/1,1/2', '1/1,1/2,2/1,2/2,2/3'];
  expect(orders).toEqual(grown.map((keys, index) => `${index + 1}/6 ${keys}`));
  expect(unreadable).toEqual([expect.stringContaining('1/live/3/log.log')]);
});

it('a pattern gets a long line in pieces of 4,096 characters', async () => {
  const lineOf = (word: string, before: number) => ({ '1/1/stdout': `${'x'.repeat(before)}${word}\n` });
  expect(await errorsOf(lineOf('diverged', 4_000), ['di[v]erged'])).toHaveLength(1);
  expect(await errorsOf(lineOf('diverged', 4_092), ['di[v]erged'])).toHaveLength(1);
});

it('a coloured error is one with the same error without colours', async () => {
  const coloured = '\u001b[31mfatal\u001b[0m: no mesh\n';
  const groups = groupsOf(await errorsOf({ '1/1/stdout': coloured, '1/2/stdout': 'fatal: no mesh\n' }));
  expect(groups).toMatchObject([{ tasks: 2, first: { text: 'fatal: no mesh' } }]);
});

it('the search for errors takes for errors, and for alike, what is written; a pattern needs these texts', async () => {
  const cases = path.join(import.meta.dirname, 'lines.txt');
  const written = fs.readFileSync(cases, 'utf8').replaceAll('\\u001b', '\u001b');
  const lines = [...written.matchAll(/^> error (.*)$/gm)].map(([, line]) => line);
  // Each line is all that a task wrote.
  const tasks = await errorsOf(Object.fromEntries(lines.map((line, at) => [`1/${at + 1}/stderr`, `${line}\n`])));
  const errors = new Set(tasks.map(({ taskId }) => lines[Number(taskId) - 1]));
  const texts = (source: string, ignoreCase: boolean) => {
    const { texts: needed, isWhole } = textsIn(source, ignoreCase);
    return `${JSON.stringify(needed)}${isWhole ? ', and no more' : ''}`;
  };
  const like = (line: string) => (likenessOf(line) === line ? '' : `: ${likenessOf(line)}`);
  const functions: Readonly<Record<string, (text: string) => string>> = {
    error: (line) => (errors.has(line) ? 'yes' : 'no') + like(line),
    ...{ like: likenessOf, texts: (source) => texts(source, false), itexts: (source) => texts(source, true) },
  };
  await expectCases(cases, (line) => {
    const [name = '', ...words] = line.replaceAll('\\u001b', '\u001b').split(' ');
    return [functions[name]?.(words.join(' ')) ?? 'no such function'];
  });
});

it('the search for errors finds the first and the last one of each task, over its files', async () => {
  const tasks = await errorsOf({
    '2/10/stdout': 'fine\nfatal: one\nfatal: two\nfine\n',
    '2/10/stderr': 'killed\nfine\nlast panic',
    '2/9/log': 'an exception\n',
    '2/8/stdout': 'fine\n',
  });
  const only = { file: 'log', line: 1, text: 'an exception' };
  expect(tasks).toEqual([
    { jobId: '2', taskId: '9', first: only, last: only },
    {
      ...{ jobId: '2', taskId: '10' },
      first: { file: 'stdout', line: 2, text: 'fatal: one' },
      last: { file: 'stderr', line: 3, text: 'last panic' },
    },
  ]);
});

it.each([20, 100, 5_000])('shows and groups what follows a progress bar of %s states on its line', async (count) => {
  const bar = Array.from({ length: count }, (_, at) => `\rEpoch 3: ${at}/${count} ${'#'.repeat(60)}`).join('');
  const tasks = await errorsOf({
    '1/1/stderr': `fine\n${bar}slurmstepd: error: Detected 1 oom_kill event\nlater: fatal`,
  });
  const [first, last] = ['slurmstepd: error: Detected 1 oom_kill event', 'later: fatal'];
  expect(tasks.map((task) => [task.first, task.last])).toEqual([
    [
      { file: 'stderr', line: 2, text: first },
      { file: 'stderr', line: 3, text: last },
    ],
  ]);
  expect(groupsOf(tasks).map(({ likeness }) => likeness)).toContain(likenessOf(first));
});

it('the search for errors shows the part of a long line that looks like an error', async () => {
  const [task] = await errorsOf({ '1/1/log': `{"fatal":"${'x'.repeat(5_000)}","level":"error","text":"lost"}\n` });
  expect(task?.first.text).toMatch(/^…x+","level":"error","text":"lost"}$/);
  expect(task?.first.text.indexOf('error')).toBeLessThan(200);
  for (const before of ['20 % ', '']) {
    const [bar] = await errorsOf({ '1/1/log': `\r10 %\r${before}CUSOLVER_STATUS_ALLOC_FAILED (3)\n` });
    expect(bar?.first.text, 'from the beginning of its word on').toBe('CUSOLVER_STATUS_ALLOC_FAILED (3)');
  }
});

it('the search for errors uses the patterns of the configuration instead of its own', async () => {
  const mirrors = { '1/1/stdout': 'an error\nDiverged (step 7)\n' };
  const [task] = await errorsOf(mirrors, ['^diverged', 'NaN']);
  expect(task?.first).toEqual({ file: 'stdout', line: 2, text: 'Diverged (step 7)' });
});

it('groups tasks whose errors are alike, the largest group first', async () => {
  const tasks = await errorsOf({
    '1/1/stderr': 'only here: fatal\nits end: fatal\n',
    '1/2/stderr': 'Traceback (most recent call last):\n  x\nError: rank 3 of node cn12 failed\n',
    '1/3/stderr': 'Traceback (most recent call last):\n  x\nError: rank 17 of node cn9 failed\n',
    '5/4/stderr': 'Error: rank 0 of node cn100 failed\nError: rank 1 of node cn7 failed\n',
  });
  const groups = groupsOf(tasks).map(({ tasks: count, likeness, first }) => [
    count,
    likeness,
    `${first.jobId}/${first.taskId} ${first.file}:${first.line}`,
  ]);
  expect(groups).toEqual([
    [3, 'Error: rank <n> of node cn<n> failed', '1/2 stderr:3'],
    [1, 'only here: fatal', '1/1 stderr:1'],
    [1, 'its end: fatal', '1/1 stderr:2'],
  ]);
});

it('a directory that is not there yet has no mirrors', () => {
  expect(mirrorsIn(path.join(os.tmpdir(), 'jobtail-no-such-directory'), { jobs: [] })).toEqual([]);
});

it('a traceback of Python is shown by what was raised', async () => {
  const traceback = [
    'Traceback (most recent call last):',
    '  File "train.py", line 3, in <module>',
    '    raise ValueError("no mesh")  # an error: see above',
    'train.MeshMissing: no mesh',
  ].join('\n');
  const tasks = await errorsOf({
    '1/1/stderr': `fine\n${traceback}\nfine\n`,
    '1/2/stderr': `${traceback}\nfatal: end\n`,
  });
  expect(tasks.map(({ first, last }) => [first.line, first.text, last.text])).toEqual([
    [5, 'train.MeshMissing: no mesh', 'train.MeshMissing: no mesh'],
    [4, 'train.MeshMissing: no mesh', 'fatal: end'],
  ]);
});

it('mirrors are listed in their order, as far as they are chosen', () => {
  const directory = temporaryDirectory();
  const generations = ['', '.1', '.2', '.10', '.11', '.x', '.01', '.12345'].map((end) => `stdout.log${end}`);
  for (const [task, files] of Object.entries({
    '2/7': generations,
    '10/9': ['log.log', 'stderr.log'],
    '10/8': ['stdout.log'],
  })) {
    const live = path.join(directory, task.replace('/', '/live/'));
    fs.mkdirSync(live, { recursive: true });
    for (const file of files) fs.writeFileSync(path.join(live, file), 'text');
  }
  fs.utimesSync(path.join(directory, '10/live/8/stdout.log'), 5, 5);
  const found = (choice: Partial<MirrorChoice>) =>
    mirrorsIn(directory, { jobs: [], ...choice }).map(
      ({ jobId, taskId, file, generation, path: at, size }) =>
        `${jobId}/${taskId} ${file}${generation === 0 ? '' : ` ${generation}`} ${path.basename(at)} ${size}`,
    );
  const [old, ...others] = ['10/8 stdout stdout.log 4', '10/9 stderr stderr.log 4', '10/9 log log.log 4'];
  const first = '2/7 stdout stdout.log 4';
  expect(found({})).toEqual([first, old, ...others]);
  expect(found({ jobs: ['10' as JobId], tasks: ['9', '7'] as TaskId[], files: ['log'] })).toEqual(others.slice(1));
  expect([found({ since: 5_000 }), found({ since: 5_001 })]).toEqual([
    [first, old, ...others],
    [first, ...others],
  ]);
  const older = [1, 2, 10, 11].map((generation) => `2/7 stdout ${generation} stdout.log.${generation} 4`);
  expect(found({ files: ['stdout'], allGenerations: true })).toEqual([first, ...older, old]);
});
