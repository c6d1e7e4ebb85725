/** What looks like an error, and which errors are alike. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { JobId, TaskId } from '../../src/job.ts';
import { type ErrorProgress, errorsIn, groupsOf, likenessOf, type TaskErrors } from '../../src/search/errors.ts';
import { hasMirrors, lossOf, type MirrorChoice, mirrorsIn } from '../../src/search/mirrors.ts';
import { textsIn } from '../../src/search/texts.ts';
import { expectCases, stepOf } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** A directory of mirrors, given by job, task and name. */
function directoryOf(mirrors: Readonly<Record<string, string>>): string {
  const directory = temporaryDirectory();
  for (const [key, content] of Object.entries(mirrors)) {
    const [job = '', ...below] = key.split('/');
    const file = path.join(directory, job, 'live', ...below);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  }
  return directory;
}

async function errorsOf(mirrors: Readonly<Record<string, string>>, patterns: readonly string[] | null = null) {
  const directory = directoryOf(mirrors);
  const unreadable: string[] = [];
  const onUnreadable = (error: string) => unreadable.push(error);
  const found: ErrorProgress[] = [];
  for await (const progress of errorsIn({ files: mirrorsIn(directory, { jobs: [] }), patterns, onUnreadable }))
    found.push(progress);
  expect(unreadable).toEqual([]);
  return [...(found.at(-1)?.tasks.values() ?? [])];
}

it('mirrors are in directories only: none is found where none is, of a job without one, or behind a link', () => {
  const directory = directoryOf({ '1/9/stdout.log': 'text' });
  const live = (job: string) => path.join(directory, job, 'live');
  for (const job of ['2', '3']) fs.mkdirSync(path.join(directory, job));
  fs.symlinkSync(live('1'), live('3'));
  fs.symlinkSync(path.join(directory, '1'), path.join(directory, '4'));
  expect(mirrorsIn(directory, { jobs: [] }).map(({ jobId }) => jobId)).toEqual(['1']);
  expect(mirrorsIn(path.join(directory, 'none'), { jobs: [] })).toEqual([]);
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
  const lines = (length: number) => 'killed\n'.repeat(length);
  const tasks = { '1/log.log': lines(9), '2/log.log': lines(1), '3/log.log': lines(5) };
  const ofJobs = ['1', '2'].flatMap((job) => Object.entries(tasks).map(([task, text]) => [`${job}/${task}`, text]));
  const directory = directoryOf(Object.fromEntries(ofJobs));
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

it('the search for errors takes for errors, and for alike, what is written; a pattern needs these texts', async () => {
  const cases = path.join(import.meta.dirname, 'lines.txt');
  const written = fs.readFileSync(cases, 'utf8').replaceAll('\\u001b', '\u001b');
  const lines = [...written.matchAll(/^> error (.*)$/gm)].map(([, line]) => line);
  // Each line is all that a task wrote.
  const tasks = await errorsOf(Object.fromEntries(lines.map((line, at) => [`1/${at + 1}/stderr.log`, `${line}\n`])));
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
  const placeOf = ({ file, line, text }: TaskErrors['first']) => `${file} ${line}: ${text}`;
  await expectCases(cases, async (line) => {
    if (line.startsWith('find ')) {
      const found = await errorsOf(...(stepOf(line, { find: (...of) => of }) as Parameters<typeof errorsOf>));
      return [
        ...found.map(({ jobId, taskId, first, last }) => `${jobId}/${taskId} ${placeOf(first)}, ${placeOf(last)}`),
        ...groupsOf(found).map(
          ({ tasks, likeness, first }) => `${tasks} as ${first.jobId}/${first.taskId}: ${likeness}`,
        ),
      ];
    }
    const [name = '', ...words] = line.replaceAll('\\u001b', '\u001b').split(' ');
    return [functions[name]?.(words.join(' ')) ?? 'no such function'];
  });
});

it('mirrors are listed in their order, as far as they are chosen', () => {
  const generations = ['', '.1', '.2', '.10', '.11', '.x', '.01', '.12345'].map((end) => `2/7/stdout.log${end}`);
  const names = [...generations, '10/9/log.log', '10/9/stderr.log', '10/8/stdout.log'];
  const directory = directoryOf(Object.fromEntries(names.map((name) => [name, 'text'])));
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
