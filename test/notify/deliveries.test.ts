/** How events reach their targets: at least once, over failures and restarts, signed, gathered, and without a secret. */
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JobId } from '../../src/job.ts';
import type { NotifyEvent } from '../../src/notification.ts';
import { UnderWay } from '../../src/notify/deliveries.ts';
import { newEvent } from '../../src/notify/events.ts';
import { Rule } from '../../src/notify/rules.ts';
import { mailText, SIGNATURE_HEADER, send } from '../../src/notify/senders.ts';
import { Secrets } from '../../src/redact.ts';
import { HttpClient } from '../../src/remote/http/http-client.ts';
import { GuardedThread } from '../../src/search/guarded-thread.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { JOB, type NotifyPlace, placeWith, ruleOf } from './place.ts';

const { signal: NEVER } = new AbortController();

/** The address of a server on loopback, which ends with the test. */
const serving = async (answer: http.RequestListener) =>
  new URL('/', closedAtEnd(await startHttpServer(answer)).url).href;

/** Of a job that has just started. */
function withRunningJob(...rules: readonly ReturnType<typeof ruleOf>[]): NotifyPlace {
  const place = placeWith(...rules);
  place.start();
  place.watch();
  place.report('Running');
  return place;
}

describe('an event', () => {
  it('is posted as a CloudEvent, with the HMAC of its body', async () => {
    const secretFile = path.join(temporaryDirectory(), 'key');
    fs.writeFileSync(secretFile, 'the key\n');
    const received: { headers: http.IncomingHttpHeaders; body: string }[] = [];
    const address = await serving(async (request, response) => {
      received.push({ headers: request.headers, body: await bodyOf(request) });
      response.end('thank you');
    });
    const url = `${address}hook/THE-SECRET-PATH`;
    const place = placeWith(ruleOf({ on: ['match'], match: 'ERROR', url, secretFile }));
    place.start();
    place.watch();
    place.grow('fine\nERROR: \u001b[31mrm -rf "$HOME"\n');
    await place.clock.passUntil('it', () => received.length === 1 && place.waiting.length === 0);
    const [{ headers, body } = { headers: {}, body: '' }] = received;
    const hmac = createHmac('sha256', 'the key').update(body).digest('hex');
    expect(headers[SIGNATURE_HEADER]).toBe(`sha256=${hmac}`);
    expect(headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    const event = JSON.parse(body) as Record<string, unknown>;
    expect(event).toMatchObject({ specversion: '1.0', source: 'jobtail/test', type: 'match', subject: 'job/501' });
    expect(event['data']).toEqual({
      ...{ id: event['id'], type: 'match', time: event['time'], count: 1, jobId: JOB, taskId: '9001', file: 'stdout' },
      ...{ generation: 1, line: 2, text: 'ERROR: \u001b[31mrm -rf "$HOME"' },
    });
    const about = { jobId: JOB, event: 'match', id: event['id'], target: `url ${new URL(url).origin}` };
    expect(place.lines).toEqual([['info', 'notification delivered', about]]);
  });

  it('is passed to a program on its standard input with the variables that the rule names, and nothing of it is an argument', async () => {
    vi.stubEnv('JOBTAIL_TEST', '1');
    vi.stubEnv('JOBTAIL_SECRET', '1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const file = path.join(temporaryDirectory(), 'events');
    const place = placeWith(
      ruleOf({
        on: ['started'],
        command: ['sh', '-c', 'cat >> "$0"; [ "$#$JOBTAIL_TEST$JOBTAIL_SECRET" = 11 ]', file, '$HOME;`x`'],
        commandEnvironment: ['JOBTAIL_TEST', 'JOBTAIL_UNSET'],
      }),
    );
    place.start();
    place.watch();
    place.report('Running', { name: '$(touch /tmp/x)' });
    await place.clock.passUntil('it', () => fs.existsSync(file) && place.waiting.length === 0);
    expect(JSON.parse(fs.readFileSync(file, 'utf8'))).toMatchObject({
      type: 'started',
      jobId: JOB,
      jobName: '$(touch /tmp/x)',
    });
    const options = { http: { request: () => Promise.reject() }, source: 'jobtail/test', secrets: new Secrets() };
    const failing = (script: string) =>
      send(new Rule(ruleOf({ command: ['sh', '-c', script] })), newEvent('test', 0, {}), options, NEVER);
    await expect(failing('echo one >&2; echo two >&2; exit 3')).rejects.toThrow('sh: exit code 3: two');
    await expect(failing('kill -9 $$')).rejects.toThrow(/^sh: killed by SIGKILL$/);
  });

  it('that is answered with 2xx was received, whatever the body is', async () => {
    const asked: string[] = [];
    const base = await serving((request, response) => {
      asked.push(request.url ?? '');
      request.resume();
      if (request.url === '/gzip') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('ok'));
      else if (request.url === '/short')
        response.writeHead(202, { 'content-length': '10' }).write('x', () => response.destroy());
      else response.writeHead(200).flushHeaders();
    });
    const place = withRunningJob(
      ...['gzip', 'short', 'hang'].map((name) => ruleOf({ on: ['started'], url: `${base}${name}` })),
    );
    await place.clock.passUntil('all', () => asked.length >= 3 && place.waiting.length === 0);
    expect(asked.sort()).toEqual(['/gzip', '/hang', '/short']);
    expect(place.warnings).toEqual([]);
  });

  it('under way is sent once, the next by the configuration that took over, and a receiver that hangs delays no stop', async () => {
    const closes = vi.spyOn(HttpClient.prototype, 'close');
    const threads = vi.spyOn(GuardedThread.prototype, 'close');
    onTestFinished(() => void vi.restoreAllMocks());
    const held: http.ServerResponse[] = [];
    const url = await serving((_, response) => void held.push(response));
    const place = placeWith(ruleOf({ on: ['started', 'canceled'], url }));
    const underWay = new UnderWay();
    const configured = () => place.start(Number.POSITIVE_INFINITY, underWay, true);
    const [requests, waiting] = [
      (count: number) => place.clock.passUntil(`request ${count}`, () => held.length === count),
      (count: number) => place.clock.passUntil(`${count} to wait`, () => place.waiting.length === count),
    ];
    const first = configured();
    for (const job of [JOB, '502' as JobId]) {
      place.watch(job);
      place.report('Running', {}, job);
    }
    await requests(1);
    await waiting(2);
    await first.replace();
    expect([closes.mock.calls.length, threads.mock.calls.length]).toEqual([0, 1]);
    held[0]?.end();
    await waiting(1);
    await place.clock.passUntil('the end of its connections', () => closes.mock.calls.length === 1);
    await place.clock.pass(60_000);
    expect(held).toHaveLength(1);
    const second = configured();
    await requests(2);
    await second.replace();
    const third = configured();
    await place.clock.pass(10_000);
    expect(held).toHaveLength(2);
    held[1]?.end();
    await waiting(0);
    place.report('Canceled');
    await requests(3);
    let isStopped = false;
    const stopping = third.stop().then(() => {
      isStopped = true;
    });
    await place.clock.pass(499);
    expect(isStopped).toBe(false);
    await place.clock.pass(1);
    await stopping;
    expect([place.waiting.length, closes.mock.calls.length, threads.mock.calls.length]).toEqual([1, 3, 3]);
  });

  it('that is refused is a failure in the words of the receiver, without what may be a secret', async () => {
    const secretFile = path.join(temporaryDirectory(), 'key');
    fs.writeFileSync(secretFile, 'KEY-OF-8');
    const bodies = ['KEY-OF-8 in hook123/SECRETP8?QUERY-08 is wrong', 'a'.repeat(5_000), Buffer.from([0xff])];
    const errors: string[] = [];
    const timers = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(() => timers.mockRestore());
    const base = await serving((request, response) => {
      request.resume();
      if (errors.length < bodies.length) response.writeHead(403).end(bodies[errors.length]);
      else response.writeHead(403, { 'content-length': '10' }).write('x', () => response.destroy());
    });
    for (const _ of [...bodies, 'a body that breaks off']) {
      const url = `${base}hook123/SECRETP8?QUERY-08`;
      const place = withRunningJob(ruleOf({ on: ['started'], url, secretFile }));
      await place.clock.passUntil('a failure', () => place.warnings.length > 0);
      errors.push(place.store.outbox.all()[0]?.lastError?.split(' answers with ')[1] ?? '');
    }
    expect(errors).toEqual([
      'HTTP status 403: *** in hook123/***?*** is wrong',
      expect.stringMatching(/^HTTP status 403: a{99,300}\.\.\.$/),
      'HTTP status 403',
      'HTTP status 403',
    ]);
    // To connect, for the status, for more of the body, and in all.
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual(expect.arrayContaining([10_000, 30_000, 1_000, 60_000]));
  });
});

it('a stop does not wait for a long file, which is read on by the next process', async () => {
  const place = placeWith(ruleOf({ match: 'ERROR' }));
  const notifications = place.start();
  place.watch();
  const { matches } = place;
  let pieces = 0;
  place.matches = async (pattern, lines) => {
    pieces += 1;
    // So long takes each piece of a long file.
    await place.clock.pass(1_000);
    return await matches(pattern, lines);
  };
  for (let megabytes = 0; megabytes < 5; megabytes++) place.grow(`${'x'.repeat(99)}\n`.repeat(10_000));
  place.grow('ERROR\n');
  for (const jobId of ['502', '503', '504'] as JobId[]) {
    place.watch(jobId);
    place.grow('fine\n', jobId);
  }
  await notifications.stop();
  expect(pieces).toBeLessThan(3);
  expect(place.waiting).toEqual([]);
  place.matches = matches;
  place.start();
  await place.clock.passUntil('the match', () => place.waiting.length === 1);
  expect(place.waiting[0]).toMatchObject({ line: 50_001 });
});

it('a stop while lines are read leaves no timer and no open file', async () => {
  const place = placeWith(ruleOf({ match: 'ERROR' }));
  const notifications = place.start();
  place.watch();
  place.grow('ERROR\n');
  let read = () => {};
  const held = new Promise<void>((resolve) => {
    read = resolve;
  });
  const matches = vi.spyOn(place, 'matches').mockReturnValue(held.then(() => [0]));
  await place.clock.passUntil('a reading', () => matches.mock.calls.length === 1);
  const stopping = notifications.stop();
  read();
  await place.clock.passWhile(stopping);
  expect([place.shown, place.clock.timers, openFilesIn(place.mirrors)]).toEqual([['match 1 ERROR'], 0, 0]);
});

it('mail has nothing of a job, and no line of an id, in its headers', () => {
  const mailOf = (event: Parameters<typeof newEvent>[2], type: NotifyEvent['type'] = 'match') => {
    const id = 'the-id>\r\nFrom: a@example.org\r\n\r\n<';
    const text = mailText('me@example.org', { ...newEvent(type, 0, event), id });
    expect(text).toMatch(/[^\n]\n$/);
    return text.slice(0, -1).split('\n\n');
  };
  const more = { jobId: JOB, jobName: 'x\nBcc: evil@example.org', text: 'a\r\n.\r\nb' };
  const [head = '', body = ''] = mailOf({ ...more, count: 3 });
  expect(head.split('\n')).toEqual([
    'To: me@example.org',
    'Subject: [jobtail] job 501 match (3 times)',
    'Message-ID: <the-idFromaexampleorg@jobtail>',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
    'Auto-Submitted: auto-generated',
  ]);
  expect(mailOf(more)[0]).toContain('Subject: [jobtail] job 501 match\n');
  expect(mailOf({}, 'test')[0]).toContain('Subject: [jobtail] test\n');
  expect(Math.max(...body.split('\n').map(({ length }) => length))).toBe(76);
  const decoded = Buffer.from(body, 'base64').toString();
  expect(decoded).toContain('jobName: x\\u{000A}Bcc: evil@example.org\n');
  expect(decoded).toContain('text: a\\u{000D}\\u{000A}.\\u{000D}\\u{000A}b\n');
});

it('without a program for mail, the event is not sent, and the failure says what to do', async () => {
  const asked = vi.spyOn(fs, 'existsSync').mockReturnValue(false);
  onTestFinished(() => asked.mockRestore());
  const options = { http: { request: () => Promise.reject() }, source: 'jobtail/test', secrets: new Secrets() };
  const rule = new Rule(ruleOf({ mail: 'me@example.org' }));
  await expect(send(rule, newEvent('test', 0, {}), options, NEVER)).rejects.toMatchObject({
    message: 'there is no /usr/sbin/sendmail',
    hint: 'install a mail server, or use command or url',
  });
  expect(asked.mock.calls.flat()).toEqual(['/usr/sbin/sendmail', '/usr/lib/sendmail']);
});
