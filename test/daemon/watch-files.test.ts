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

interface Case {
  /** The file that is watched, made as it is at the beginning. */
  readonly begin: (directory: string) => string;
  readonly changes: readonly ((directory: string, file: string) => void)[];
}

const OLD_SECONDS = 1_000_000_000;
const write = (file: string, text: string) => fs.writeFileSync(file, text);
const writeOld = (file: string, text: string) => {
  write(file, text);
  fs.utimesSync(file, OLD_SECONDS, OLD_SECONDS);
};
const made = (directory: string) => {
  write(path.join(directory, 'file'), 'one');
  return path.join(directory, 'file');
};
const replace = (_: string, file: string) => {
  write(`${file}.new`, 'two');
  fs.renameSync(`${file}.new`, file);
};
const version = (directory: string, name: string) => {
  fs.mkdirSync(path.join(directory, name), { recursive: true });
  writeOld(path.join(directory, name, 'file'), name);
};
/** Lets a link lead elsewhere in one step. */
const swap = (directory: string, link: string, target: string) => {
  fs.symlinkSync(target, path.join(directory, 'fresh-link'));
  fs.renameSync(path.join(directory, 'fresh-link'), path.join(directory, link));
};
/** As Kubernetes mounts a ConfigMap or a Secret. */
const mounted = (directory: string) => {
  version(directory, 'v1');
  fs.symlinkSync('v1', path.join(directory, '..data'));
  fs.symlinkSync('..data/file', path.join(directory, 'file'));
  return path.join(directory, 'file');
};
const remount = (next: string, before?: string) => (directory: string) => {
  version(directory, next);
  swap(directory, '..data', next);
  if (before !== undefined) fs.rmSync(path.join(directory, before), { recursive: true });
};

const CASES: Record<string, Case> = {
  'is written, again and again': {
    begin: made,
    changes: [1, 2, 3].map((round) => (_, file) => write(file, `round ${round}`)),
  },
  'is replaced by one that is as long and no newer': {
    begin: made,
    changes: [
      (_, file) => {
        writeOld(`${file}.new`, 'two');
        fs.renameSync(`${file}.new`, file);
      },
      (_, file) => write(file, 'six'),
    ],
  },
  'is written, with length and time as they were': {
    begin: (directory) => {
      writeOld(path.join(directory, 'file'), 'one');
      return path.join(directory, 'file');
    },
    changes: [(_, file) => writeOld(file, 'two')],
  },
  'gets other rights': { begin: made, changes: [(_, file) => fs.chmodSync(file, 0o600)] },
  'is removed and made again': {
    begin: made,
    changes: [(_, file) => fs.rmSync(file), (_, file) => write(file, 'one'), (_, file) => write(file, 'more')],
  },
  'is made later, with the directories above it': {
    begin: (directory) => path.join(directory, 'a', 'b', 'file'),
    changes: [
      (directory, file) => {
        fs.mkdirSync(path.join(directory, 'a', 'b'), { recursive: true });
        write(file, 'one');
      },
      (_, file) => write(file, 'more'),
      replace,
    ],
  },
  'is swapped as Kubernetes does it, again and again': {
    begin: mounted,
    changes: [remount('v2', 'v1'), remount('v3', 'v2'), remount('v4', 'v3')],
  },
  'is a link that leads elsewhere': {
    begin: (directory) => {
      for (const name of ['v1', 'v2']) version(directory, name);
      fs.symlinkSync('v1/file', path.join(directory, 'file'));
      return path.join(directory, 'file');
    },
    changes: [
      (directory) => swap(directory, 'file', 'v2/file'),
      (directory) => write(path.join(directory, 'v2', 'file'), 'written'),
    ],
  },
};

describe.concurrent('a watch', () => {
  test.for(Object.keys(CASES))('is notified of a file that %s', async (name, context) => {
    const { begin, changes } = CASES[name] as Case;
    const { directory, start } = place(context);
    const file = begin(directory);
    const reported: string[] = [];
    start([file], { onChange: () => void reported.push(lookAt(file)) });
    for (const change of changes) {
      reported.length = 0;
      change(directory, file);
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
