/** Calls for many files: which calls are made where some of them fail, as is written in batch.txt. */
import path from 'node:path';
import { expect, test } from 'vitest';
import type { PartRequest, Parts } from '../../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, type TaskId } from '../../../src/job.ts';
import { BatchReader, PassingLimit } from '../../../src/remote/text/batch.ts';
import { JOB } from '../../support/engine.ts';
import { expectCases } from '../../support/errors.ts';
import { ModelRemote } from '../../support/model-remote.ts';

/** Notes each call, and fails as a step says. */
class BatchRemote extends ModelRemote {
  readonly noted: string[] = [];
  /** Why a call fails. */
  failureOf: (wanted: readonly PartRequest[]) => ErrorCode | undefined = () => undefined;
  nowMs = 0;
  /** What happens before the second call of a read. */
  beforeSecond = () => {};

  override async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    if (this.noted.length === 1) this.beforeSecond();
    // A call at the end of a file asks whether it can be read at all.
    const files = wanted.map(({ taskId, offset }) => (offset === 0 ? taskId : `${taskId} at its end`)).join(' ');
    this.noted.push(`(${files})`);
    const code = this.failureOf(wanted);
    if (code !== undefined) throw new JobtailError(code, 'a step says so');
    const parts = await super.readParts(jobId, wanted, signal);
    this.noted.push(`${this.noted.pop()} ok`);
    return parts;
  }
}

const WANTED = Array.from({ length: 8 }, (_, task): PartRequest => {
  return { taskId: String(task) as TaskId, file: 'stdout', offset: 0 };
});
const has = (task: string) => (wanted: readonly PartRequest[]) => wanted.some(({ taskId }) => taskId === task);

function setUp() {
  const remote = new BatchRemote();
  for (const request of WANTED) remote.files.set(keyText(request), Buffer.from('text'));
  return { remote, batches: new BatchReader(JOB, new PassingLimit(() => remote.nowMs)) };
}

const STEPS: Readonly<Record<string, (remote: BatchRemote, ...words: readonly string[]) => unknown>> = {
  poison: (remote, ...tasks) => {
    for (const task of tasks) remote.poisoned.add(`${task}/stdout`);
  },
  heal: (remote, ...tasks) => {
    for (const task of tasks) remote.poisoned.delete(`${task}/stdout`);
  },
  fail: (remote, code) => remote.failures.push(new JobtailError(code as ErrorCode, 'a step says so')),
  long: (remote, task, letter) => remote.files.set(`${task}/stdout`, Buffer.alloc(9_000, letter)),
  most: (remote, max) => {
    remote.failureOf = (wanted) => (wanted.length > Number(max) ? 'request-too-long' : undefined);
  },
  refuse: (remote, task = '') => {
    remote.failureOf = (wanted) => (has(task)(wanted) ? 'request-too-long' : undefined);
  },
  heavy: (remote, task = '', code) => {
    remote.failureOf = (wanted) =>
      has(task)(wanted.filter(({ offset }) => offset === 0)) ? (code as ErrorCode) : undefined;
  },
  pass: (remote, minutes) => {
    remote.nowMs += Number(minutes) * 60_000;
  },
  late: (remote, task) => {
    remote.files.delete(`${task}/stdout`);
    remote.beforeSecond = () => remote.files.set(`${task}/stdout`, Buffer.from('text'));
  },
  halves: (remote) => {
    const divide = (_: JobId, requests: readonly PartRequest[]) => [requests.slice(0, 4), requests.slice(4)];
    Object.assign(remote, { divide });
    remote.failureOf = (wanted) => (has('4')(wanted) ? 'unreachable' : undefined);
  },
};

/** What one read brings, of these tasks, and its calls. */
async function readBy({ remote, batches }: ReturnType<typeof setUp>, words: readonly string[]): Promise<string> {
  const tasks = words.filter((word) => /^\d$/.test(word));
  const wanted = WANTED.filter(({ taskId }) => tasks.length === 0 || tasks.includes(taskId));
  // A thousand bytes of text are enough.
  const cut = words.includes('cut') ? wanted.map((request) => ({ ...request, enoughBytes: 1_000 })) : wanted;
  remote.noted.length = 0;
  const request = { wanted: cut, isFirst: !words.includes('later') };
  const numbers = (names: Iterable<string>) => [...names].sort().join(' ').replaceAll('/stdout', '');
  const outcome = await batches.read(remote, request, new AbortController().signal).then(
    async ({ parts, errors }) => {
      const begun: string[] = [];
      for (const { taskId, content, isBeginning } of parts.values()) {
        if (isBeginning && content.length > 0) begun.push(`${taskId} begins with ${await content.read(0, 1)}`);
        await content.release();
      }
      return [`read ${numbers(parts.keys())}`, ...begun.sort(), `failed ${numbers(errors.keys())}`].join(', ');
    },
    (thrown: unknown) => `thrown ${thrown instanceof JobtailError ? thrown.code : thrown}`,
  );
  expect(remote.held).toBe(0);
  return `${outcome}, by ${remote.noted.join(' ')}`;
}

test('each read of many files takes the calls, and brings the texts, that are written', async () => {
  await expectCases(path.join(import.meta.dirname, 'batch.txt'), async (written) => {
    const place = setUp();
    const result: string[] = [];
    for (const step of written.split('; ')) {
      const [word = '', ...words] = step.split(' ');
      const times = word === 'read' ? Number(/^x(\d+)$/.exec(words.at(-1) ?? '')?.[1] ?? 1) : 0;
      for (let time = 0; time < times; time++) result.push(`${step}: ${await readBy(place, words)}`);
      if (times > 0) continue;
      expect(Object.keys(STEPS)).toContain(word);
      STEPS[word]?.(place.remote, ...words);
    }
    return result;
  });
});
