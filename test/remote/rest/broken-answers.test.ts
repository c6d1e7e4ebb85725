import { afterAll, afterEach, expect, test } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { slowness, watchTurns } from '../../support/turns.ts';
import { BROKEN_JSON, type BrokenJson } from '../../support/wire-broken-json.ts';
import { JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { createRest, type TestRest } from '../../support/wire-rest.ts';
import { startTcpServer, until } from '../../support/wire-server.ts';

const signal = new AbortController().signal;
const closing: { close(): Promise<void> }[] = [];
const startBytes = process.memoryUsage().rss;

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

function call({ remote, jobs }: TestRest, operation: BrokenJson['operation']): Promise<unknown> {
  switch (operation) {
    case 'DownloadFileFromCluster':
      return remote.downloadFile(JOB, '/a', () => undefined, signal);
    case 'ListChangedFilesForJob':
      return remote.listChangedFiles(JOB, signal);
    case 'GetCurrentInfoForJob':
      return jobs.getJob(JOB, signal);
    default:
      return remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
  }
}

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** Makes the call and returns its failure and for how long the process could do nothing else, at most, in milliseconds. */
async function suffer({ serve, operation, code }: BrokenJson): Promise<{ error: unknown; blockedMs: number }> {
  const server = await startTcpServer((socket) => socket.on('data', (data) => isEnd(data) && serve(socket)));
  const limits = code === 'timeout' ? SHORT : LONG;
  const made = createRest(server.url, { limits, maxSmallAnswerBytes: 2 * 1024 * 1024 });
  closing.push(server, made);
  const turns = watchTurns();
  const error = await call(made, operation).then(
    () => 'it succeeded',
    (thrown: unknown) => thrown,
  );
  const blockedMs = turns.longestMs();
  await until(() => server.open() <= 2);
  // Nothing of a broken answer is believed.
  expect([...made.kept.keys()].filter((name) => name === 'rest-path')).toEqual([]);
  return { error, blockedMs };
}

function isEnd(data: Buffer): boolean {
  const text = data.toString();
  return text.endsWith('}') || (text.startsWith('GET ') && text.endsWith('\r\n\r\n'));
}

test('there are enough of them', () => {
  expect(BROKEN_JSON.length).toBeGreaterThan(60);
});

test.each(BROKEN_JSON.map((broken) => [broken.what, broken] as const))('%s', async (_, broken) => {
  let { error, blockedMs } = await suffer(broken);
  // The garbage of all before may be collected in any of them: only what blocks again and again is a defect.
  let limitMs = 100;
  for (let again = 0; blockedMs > limitMs && again < 5; again += 1) {
    blockedMs = (await suffer(broken)).blockedMs;
    limitMs = 100 * Math.max(1, slowness());
  }
  expect(blockedMs).toBeLessThan(limitMs);
  if (!(error instanceof JobtailError)) throw new Error(`expected a JobtailError, got ${String(error)}`);
  expect(`${error.code}: ${error.message}`).toMatch(new RegExp(`^${broken.code}: `));
  expect(error.message).toContain(broken.says ?? '');
  expect(error.message.length).toBeLessThan(700);
  expect(JSON.stringify([error.message, error.hint, error.stack, error.cause])).not.toContain(SESSION_CODE);
  expect(error.cause).toBeUndefined();
  const waits = error.code === 'rate-limited' || (error.code === 'unavailable' && broken.what === '503');
  expect(error.retryAfterMs).toBe(waits ? 7000 : undefined);
});

afterAll(() => {
  // Bounded, not exact: the garbage of all of them together.
  expect(process.memoryUsage().rss - startBytes).toBeLessThan(500 * 1024 * 1024);
});
