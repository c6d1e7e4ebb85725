/** Files that are watched, and changes of them that no event reports. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { FileWatch, watchedFiles } from '../../src/daemon/watch-files.ts';
import { MINIMAL } from '../config/files.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

/** A directory and what watches files in it, both gone when the test is over. */
function place({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const directory = temporaryDirectory(undefined, { onTestFinished });
  const start = (files: readonly string[], { onChange = (_: string) => {} } = {}) => {
    const changed: string[] = [];
    const watch = new FileWatch();
    const reporterOf = (file: string) => () => {
      changed.push(file);
      onChange(file);
    };
    const watchAll = (some: readonly string[]) => watch.watch(new Map(some.map((file) => [file, reporterOf(file)])));
    onTestFinished(() => watch.close());
    watchAll(files);
    return { changed, watchAll, close: () => watch.close() };
  };
  return { directory, start };
}

const soon = (condition: () => void) => vi.waitFor(condition, { timeout: 20_000, interval: 20 });

const OLD_SECONDS = 1_000_000_000;
const write = (file: string, text: string) => fs.writeFileSync(file, text);

/** What happens to a file, by the first word of a step. */
const STEPS: Readonly<Record<string, (file: string, word: string, directory: string) => void>> = {
  write,
  // As long ago as any other old one.
  old(file, text) {
    write(file, text);
    fs.utimesSync(file, OLD_SECONDS, OLD_SECONDS);
  },
  chmod: (file, mode) => fs.chmodSync(file, Number.parseInt(mode, 8)),
  rm: (file) => fs.rmSync(file, { recursive: true }),
  mkdir: (file) => fs.mkdirSync(file, { recursive: true }),
  move: (file, name, directory) => fs.renameSync(file, path.join(directory, name)),
  // In one step, also if it leads elsewhere already.
  link(file, target) {
    fs.symlinkSync(target, `${file}.fresh`);
    fs.renameSync(`${file}.fresh`, file);
  },
};

function does(directory: string, steps: string): void {
  for (const step of steps === '' ? [] : steps.split('; ')) {
    const [word = '', name = '', rest = ''] = step.split(' ');
    const act = STEPS[word];
    if (act === undefined) throw new Error(`there is no such step: ${step}`);
    act(path.join(directory, name), rest, directory);
  }
}

const replace = 'write new two; move new file';
/** As Kubernetes mounts a ConfigMap or a Secret. */
const version = (name: string) => `mkdir ${name}; old ${name}/file ${name}`;
const remount = (before: string, next: string) => `${version(next)}; link ..data ${next}; rm ${before}`;

describe.concurrent('a watch', () => {
  test.for<[string, begin: string, ...string[]]>([
    ['is written, again and again', 'write file one', 'write file 1', 'write file 2', 'write file 3'],
    [
      'is replaced by one that is as long and no newer',
      'write file one',
      'old new two; move new file',
      'write file six',
    ],
    ['is written, with length and time as they were', 'old file one', 'old file two'],
    ['gets other rights', 'write file one', 'chmod file 600'],
    ['is removed and made again', 'write file one', 'rm file', 'write file one', 'write file more', replace],
    ['is made later, with the directories above it', '', 'mkdir a/b; write a/b/file one', 'write a/b/file more'],
    [
      'is swapped as Kubernetes does it, again and again',
      `${version('v1')}; link ..data v1; link file ..data/file`,
      ...[remount('v1', 'v2'), remount('v2', 'v3'), remount('v3', 'v4')],
    ],
    [
      'is a link that leads elsewhere',
      `${version('v1')}; ${version('v2')}; link file v1/file`,
      ...['link file v2/file', 'write v2/file written'],
    ],
  ])('is notified of a file that %s', async ([, begin, ...changes], context) => {
    const { directory, start } = place(context);
    const file = path.join(directory, begin === '' ? 'a/b/file' : 'file');
    does(directory, begin);
    const reported: string[] = [];
    start([file], { onChange: () => void reported.push(lookAt(file)) });
    for (const change of changes) {
      reported.length = 0;
      does(directory, change);
      const expected = lookAt(file);
      await soon(() => expect(reported).toContain(expected));
    }
  });
});

/** How a file is now, for whoever reads it. */
function lookAt(file: string): string {
  try {
    const { mode, mtimeMs } = fs.statSync(file);
    return `${fs.readFileSync(file, 'utf8')} ${mode} ${mtimeMs}`;
  } catch {
    return 'none';
  }
}

test('files come and go while it watches, nothing is missed of those that stay, and nothing of others is reported', async (context) => {
  const { directory, start } = place(context);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => path.join(directory, name)) as [string, string, string];
  for (const file of [a, b, c]) write(file, 'before');
  const { changed, watchAll } = start([a, b]);
  // The change is not reported yet when the files are said anew.
  write(b, 'behind');
  watchAll([b, c]);
  const checks = vi.spyOn(fs.promises, 'stat');
  context.onTestFinished(() => checks.mockRestore());
  await soon(() => expect(changed).toContain(b));
  write(a, 'behind');
  write(path.join(directory, 'other'), 'behind');
  write(c, 'behind');
  await soon(() => expect(changed).toContain(c));
  expect(new Set(changed)).toEqual(new Set([b, c]));
  expect(checks.mock.calls.map(([file]) => file)).not.toContain(a);
});

test('a secret that is written in several steps is read once, when it is whole', async (context) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  context.onTestFinished(() => void vi.useRealTimers());
  const file = path.join(temporaryDirectory(), 'config.yaml');
  write(file, MINIMAL);
  const config = await loadConfig(file);
  const onSecret = vi.fn();
  const reporterOf = watchedFiles([config], '/wake', { onWake() {}, onConfig() {}, onSecret });
  const changed = [...reporterOf].find(([name]) => name.endsWith('password'))?.[1];
  for (let steps = 0; steps < 3; steps++) {
    changed?.();
    vi.advanceTimersByTime(199);
  }
  expect(onSecret).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(onSecret).toHaveBeenCalledOnce();
  changed?.();
  vi.advanceTimersByTime(200);
  expect(onSecret).toHaveBeenCalledTimes(2);
});

test('files are checked at one interval, however often they are said anew, and at none after the end', (context) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  context.onTestFinished(() => void vi.useRealTimers());
  const { directory, start } = place(context);
  const { watchAll, close } = start([path.join(directory, 'a')]);
  watchAll([path.join(directory, 'b')]);
  expect(vi.getTimerCount()).toBe(1);
  close();
  expect(vi.getTimerCount()).toBe(0);
});

test('nothing is reported of what happens to a file after the end', async (context) => {
  const { directory, start } = place(context);
  const [file, other] = ['a', 'b'].map((name) => path.join(directory, name)) as [string, string];
  const ended = start([file]);
  const { changed, close } = start([other]);
  ended.close();
  write(file, 'one');
  write(other, 'one');
  await soon(() => expect(changed).toContain(other));
  expect(ended.changed).toEqual([]);
  close();
  await soon(() => expect(process.getActiveResourcesInfo()).not.toContain('FSEventWrap'));
});

test('a check that hangs delays none of another file, and is not made again', async (context) => {
  const { directory, start } = place(context);
  const [hanging, file] = ['on-nfs', 'password'].map((name) => path.join(directory, name)) as [string, string];
  const stat = fs.promises.stat.bind(fs.promises);
  const hang = vi
    .spyOn(fs.promises, 'stat')
    .mockImplementation(((at: string, options: fs.StatOptions) =>
      at === hanging ? new Promise(() => {}) : stat(at, options)) as typeof fs.promises.stat);
  context.onTestFinished(() => hang.mockRestore());
  const { changed } = start([hanging, file]);
  await soon(() => expect(hang).toHaveBeenCalledWith(hanging, expect.anything()));
  write(file, 'changed');
  await soon(() => expect(changed).toEqual([file]));
  expect(hang.mock.calls.filter(([at]) => at === hanging)).toHaveLength(1);
});
