/** How a call fares with a broken answer, over any protocol. */
import { expect } from 'vitest';
import type { Remote } from '../../src/agent/ports/server.ts';
import { JobtailError } from '../../src/errors.ts';
import type { HttpLimits } from '../../src/remote/http/http-client.ts';
import { slowness, watchTurns } from './turns.ts';
import type { Broken } from './wire-broken-http.ts';
import { JOB, SESSION_CODE, TASK } from './wire-remote.ts';
import { startTcpServer, until } from './wire-server.ts';

interface Options {
  /** So few that small answers reach them. */
  readonly limits: HttpLimits;
  readonly maxSmallAnswerBytes: number;
}

interface Connected {
  /** Makes the call that is to fail. */
  call(): Promise<unknown>;
  close(): Promise<void>;
}

export interface Protocol {
  /** Whether these are the last bytes of a request. */
  readonly isEnd: (data: Buffer) => boolean;
  readonly connect: (url: string, options: Options, broken: Broken) => Connected;
}

const SHORT = { connectMs: 20_000, headersMs: 250, idleMs: 250, totalMs: 1500 };
/** Where something else is to be met first: on a busy machine, too. */
const LONG = { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

/** The call of an operation, with as little as it may have. */
export function callOf(remote: Remote, operation: Broken['operation']): Promise<unknown> {
  const { signal } = new AbortController();
  if (operation === 'DownloadFileFromCluster') return remote.downloadFile(JOB, '/a', () => undefined, signal);
  if (operation === 'ListChangedFilesForJob') return remote.listChangedFiles(JOB, signal);
  return remote.readParts(JOB, [{ taskId: TASK, file: 'stdout', offset: 0 }], signal);
}

/** Makes the call and returns its failure and for how long the process could do nothing else, at most, in milliseconds. */
async function suffer(broken: Broken, { isEnd, connect }: Protocol): Promise<{ error: unknown; blockedMs: number }> {
  const server = await startTcpServer((socket) => socket.on('data', (data) => isEnd(data) && broken.serve(socket)));
  const limits = broken.code === 'timeout' ? SHORT : LONG;
  const connected = connect(server.url, { limits, maxSmallAnswerBytes: 2 * 1024 * 1024 }, broken);
  try {
    const turns = watchTurns();
    const error = await connected.call().then(
      () => 'it succeeded',
      (thrown: unknown) => thrown,
    );
    const blockedMs = turns.longestMs();
    await until(() => server.open() <= 2);
    return { error, blockedMs };
  } finally {
    await connected.close();
    await server.close();
  }
}

/** Expects that the call fails as it should, in a few words, and soon. */
export async function expectFailure(broken: Broken, protocol: Protocol): Promise<void> {
  let { error, blockedMs } = await suffer(broken, protocol);
  // The garbage of all before may be collected in any of them: only what blocks again and again is a defect.
  const { blocksMs = 100 } = broken;
  let limitMs = blocksMs;
  for (let again = 0; blockedMs > limitMs && again < 5; again += 1) {
    blockedMs = (await suffer(broken, protocol)).blockedMs;
    limitMs = blocksMs * Math.max(1, slowness());
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
}
