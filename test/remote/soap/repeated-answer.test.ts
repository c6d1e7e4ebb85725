/** The same question and the same answer again: the request is the same to the byte, and the answer is not read. */
import { afterEach, expect, test } from 'vitest';
import type { Grant, PartRequest } from '../../../src/agent/ports.ts';
import { entry, partsResponse } from '../../support/wire-envelopes.ts';
import { createRemote, GivenSession, JOB, SESSION_CODE, TASK } from '../../support/wire-remote.ts';
import { bodyOf, startHttpServer } from '../../support/wire-server.ts';

const { signal } = new AbortController();
const WANTED: readonly PartRequest[] = [{ taskId: TASK, file: 'stdout', offset: 7 }];
const closing: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

async function setUp(session = new GivenSession()) {
  const requests: string[] = [];
  const service = { text: 'a line\n', status: 200 };
  const server = await startHttpServer(async (request, response) => {
    requests.push(await bodyOf(request));
    response.writeHead(service.status, { 'content-type': 'text/xml; charset=utf-8' }).end(answerWith(service.text));
  });
  closing.push(server);
  const made = createRemote(server.url, { session });
  closing.push(made);
  const read = async (known?: string | null, wanted = WANTED) => {
    const { parts, fingerprint, isKnown = false } = await made.remote.readParts(JOB, wanted, signal, known);
    const texts: string[] = [];
    for (const { content } of parts) {
      texts.push((await content.read(0, content.length)).toString());
      await content.release();
    }
    return { texts, fingerprint, isKnown };
  };
  return { read, requests, service, events: made.events, remote: made.remote };
}

const answerWith = (text: string) => partsResponse(entry(text, { offset: '7' }));

test('an answer that is known is not read, and costs the same request', async () => {
  const { read, requests, events } = await setUp();
  const first = await read(null);
  expect(first).toMatchObject({ texts: ['a line\n'], isKnown: false });
  expect(first.fingerprint).toBeTypeOf('string');
  expect(await read(first.fingerprint)).toEqual({ texts: [], fingerprint: first.fingerprint, isKnown: true });
  expect(requests[1]).toBe(requests[0]);
  const [{ bytes } = { bytes: 0 }] = events;
  expect(events.map((event) => [event.outcome, event.bytes])).toEqual([
    ['ok', bytes],
    ['ok', bytes],
  ]);
});

test('another answer is read', async () => {
  const { read, service } = await setUp();
  const { fingerprint } = await read(null);
  service.text = 'a line\nand one\n';
  const second = await read(fingerprint);
  expect(second).toMatchObject({ texts: ['a line\nand one\n'], isKnown: false });
  expect(second.fingerprint).not.toBe(fingerprint);
});

test('the answer to another question is never a known one', async () => {
  const { read } = await setUp();
  const { fingerprint } = await read(null);
  expect(await read(fingerprint, [{ taskId: TASK, file: 'stdout', offset: 8 }])).toMatchObject({ isKnown: false });
});

test('nothing is known of a job that was forgotten', async () => {
  const { read, remote } = await setUp();
  const { fingerprint } = await read(null);
  remote.forgetJob(JOB);
  expect(await read(fingerprint)).toMatchObject({ texts: ['a line\n'], isKnown: false });
});

test('a lost session is renewed, and the answer is read anew', async () => {
  const grants: Grant[] = ['one', 'two'].map((code) => ({ kind: 'session', code: `${SESSION_CODE}-${code}` }));
  const session = new GivenSession(...grants);
  const { read, requests } = await setUp(session);
  const { fingerprint } = await read(null);
  session.lost({ kind: 'session', code: SESSION_CODE });
  expect(await read(fingerprint)).toMatchObject({ texts: ['a line\n'], isKnown: false });
  expect(requests[1]).toContain('-two');
  expect(await read(fingerprint)).toMatchObject({ isKnown: true });
});

test('a long answer has no fingerprint, and no answer has one that nobody asked for', async () => {
  const { read, service } = await setUp();
  expect((await read()).fingerprint).toBeUndefined();
  service.text = 'x'.repeat(100_000);
  expect(await read(null)).toMatchObject({ texts: [service.text], fingerprint: undefined });
});

test('a refusal of the repeated request is one', async () => {
  const { read, service } = await setUp();
  const { fingerprint } = await read(null);
  service.status = 500;
  await expect(read(fingerprint)).rejects.toMatchObject({ code: expect.any(String) });
  service.status = 200;
  expect(await read(fingerprint)).toMatchObject({ isKnown: true });
});
