/** How events reach their targets: at least once, over failures and restarts, signed, gathered, and without a secret. */
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
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
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { JOB, type NotifyPlace, placeWith, ruleOf } from './place.ts';

interface Received {
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** The address of a server on loopback, which ends with the test. */
const serving = async (answer: http.RequestListener) =>
  new URL('/', closedAtEnd(await startHttpServer(answer)).url).href;

/** A receiver that answers with what `status` returns. */
async function receiver(status: () => number = () => 200) {
  const received: Received[] = [];
  const address = await serving(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const code = status();
    if (code < 300) received.push({ headers: request.headers, body });
    response.writeHead(code, { location: 'http://127.0.0.1:9/' }).end('thank you');
  });
  const url = `${address}hook/THE-SECRET-PATH`;
  return {
    url,
    received,
    events: () =>
      received.map(({ body }) => (JSON.parse(body) as { data: { count: number; type: string; id: string } }).data),
  };
}

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
    const { url, received } = await receiver();
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
  });

  it('reaches a receiver that fails for an hour, or redirects, once it works, with the same id', async () => {
    let isBroken = true;
    const codes = [300, 302, 400, 500];
    const attempts: (number | undefined)[] = [];
    const { url, received, events } = await receiver(() => {
      if (isBroken) attempts.push(place.store.outbox.all()[0]?.attempts);
      return isBroken ? (codes.shift() ?? 503) : 200;
    });
    const place = withRunningJob(ruleOf({ on: ['started', 'finished'], url }));
    await place.tick();
    place.report('Finished');
    const begun = place.clock.now();
    const ids = () => place.waiting.map(({ id }) => id);
    await place.clock.passUntil('two events', () => ids().length === 2);
    const before = ids();
    await place.clock.passUntil('an hour', () => place.clock.now() - begun > 3_600_000 && attempts.length > 5);
    expect(received).toEqual([]);
    expect(attempts, 'each attempt is committed before it is made').toEqual(attempts.map((_, index) => index + 1));
    expect(place.store.outbox.all()[0]?.lastError).toContain('answers with HTTP status 503');
    expect(JSON.stringify(place.store.outbox.all())).not.toContain('SECRET-PATH');
    place.start();
    isBroken = false;
    await place.clock.passUntil('both', () => events().length === 2 && place.waiting.length === 0);
    expect(events().map(({ id }) => id)).toEqual(before);
    // Once for each process, not for each attempt.
    expect(place.warnings.length).toBeLessThanOrEqual(2);
  });

  it('of a job that another agent acquired meanwhile is not kept', async () => {
    const { url } = await receiver(() => {
      for (const row of place.store.outbox.all()) place.store.outbox.remove(row);
      return 503;
    });
    const place = withRunningJob(ruleOf({ on: ['started'], url }));
    await place.clock.passUntil('a failure', () => place.warnings.length > 0);
    expect(place.waiting).toEqual([]);
  });

  it('whose job is removed while it is sent has its failure, and is sent as well', async () => {
    let isBroken = true;
    const { url, events } = await receiver(() => {
      if (!isBroken) return 200;
      place.setState('ended');
      place.store.jobs.forget(JOB, place.clock.now());
      return 503;
    });
    const place = withRunningJob(ruleOf({ on: ['started'], url }));
    await place.clock.passUntil('a failure', () => place.warnings.length > 0);
    expect(place.store.outbox.all()).toMatchObject([
      { jobId: null, attempts: 1, lastError: expect.stringContaining('503') },
    ]);
    isBroken = false;
    await place.clock.passUntil('the event', () => events().length === 1 && place.waiting.length === 0);
    expect(events()).toMatchObject([{ type: 'started', jobId: JOB }]);
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

  it('waits as long as the receiver asks for', async () => {
    let requests = 0;
    const url = await serving((request, response) => {
      requests += 1;
      request.resume();
      response.writeHead(503, { 'retry-after': '600' }).end();
    });
    const place = withRunningJob(ruleOf({ on: ['started', 'canceled'], url }));
    await place.clock.passUntil('a failure', () => (place.store.outbox.all()[0]?.lastError ?? null) !== null);
    const [row] = place.store.outbox.all();
    expect((row?.dueAt ?? 0) - place.clock.now()).toBeGreaterThan(590_000);
    // So does the next one.
    place.report('Canceled');
    await place.clock.pass(500_000);
    expect([requests, place.waiting.length]).toEqual([1, 2]);
  });

  it('whose attempt cannot be stored is not sent, which is logged once until it clears, as a failure of the target is', async () => {
    const codes = [503, 200, 503];
    const { url, received } = await receiver(() => codes.shift() ?? 200);
    const place = withRunningJob(ruleOf({ on: ['started', 'canceled'], url }));
    const failing = async () => {
      const save = vi.spyOn(place.store.outbox, 'save').mockImplementation(() => {
        throw new JobtailError('store', 'the state cannot be written', { hint: 'free some space' });
      });
      await place.clock.pass(30_000);
      save.mockRestore();
    };
    const logged = () =>
      place.lines.filter(([level]) => level === 'warn').map(([, message, fields]) => [message, fields]);
    await failing();
    expect([codes.length, received.length]).toEqual([3, 0]);
    await place.clock.passUntil('its delivery', () => received.length === 1 && place.waiting.length === 0);
    place.report('Canceled');
    await place.clock.passUntil('the other one', () => received.length === 2 && place.waiting.length === 0);
    const unwritten = [
      'creating notifications failed',
      { code: 'store', err: 'the state cannot be written', hint: 'free some space' },
    ];
    const failed = ['notification failed', { attempts: 1, code: 'http-status' }];
    expect(logged()).toMatchObject([unwritten, failed, failed]);
    // Both work again: the next failure is logged, too.
    place.report('Running');
    await failing();
    expect(logged()).toMatchObject([unwritten, failed, failed, unwritten]);
    await place.clock.passUntil('the last one', () => received.length === 3);
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

  it.each([
    ['many attempts', 'echo one >&2; echo two >&2; exit 3', 'sh: exit code 3: two'],
    ['a day', 'kill -9 $$', 'sh: killed by SIGKILL'],
  ])('is given up after %s, and listed for a week', async (after, script, lastError) => {
    const DAY_MS = 86_400_000;
    const place = withRunningJob(ruleOf({ on: ['started'], command: ['sh', '-c', script] }));
    // An attempt is committed before it is made, and once more with its failure.
    const saves = vi.spyOn(place.store.outbox, 'save');
    const attempts = (count: number) =>
      place.clock.passUntil(`${count} attempts`, () => saves.mock.calls.length === 2 * count);
    await attempts(1);
    // While it is made, no other process makes it, too.
    const [tried] = saves.mock.calls[0] ?? [];
    expect(tried).toMatchObject({ attempts: 1, lastError: null });
    expect((tried?.dueAt ?? 0) - (tried?.madeAt ?? 0)).toBeGreaterThanOrEqual(5_000);
    const givenUp = () => place.store.outbox.counts().givenUp;
    const [row] = place.store.outbox.all();
    if (row !== undefined && after === 'many attempts')
      place.store.outbox.save({ ...row, attempts: 98, lastError: null });
    if (after === 'many attempts') {
      await place.clock.passUntil('the next attempt', () => saves.mock.calls.length === 5);
      // No pause is longer than a quarter of an hour.
      const [late] = place.store.outbox.all();
      expect(Math.abs((late?.dueAt ?? 0) - place.clock.now() - 15 * 60_000)).toBeLessThan(30_000);
    } else {
      place.clock.stepWall(DAY_MS - 3_600_000);
      await attempts(2);
      expect(givenUp()).toBe(0);
      place.clock.stepWall(3_600_000);
    }
    await place.clock.passUntil('the end', () => givenUp() === 1);
    const all = after === 'a day' ? 3 : 100;
    expect(place.store.outbox.all()).toMatchObject([{ dueAt: null, attempts: all, lastError }]);
    const about = { jobId: JOB, event: 'started', id: row?.event.id, target: 'command sh', err: lastError };
    expect(place.lines).toMatchObject([
      ['warn', 'notification failed', { ...about, attempts: 1, code: 'local-io' }],
      ['error', 'notification given up', { ...about, attempts: all, code: 'local-io' }],
    ]);
    place.clock.stepWall(5 * DAY_MS);
    place.start();
    expect(givenUp()).toBe(1);
    place.clock.stepWall(2 * DAY_MS);
    // By the process that goes on, or the next one.
    if (after === 'a day') return await place.clock.passUntil('the end of the week', () => givenUp() === 0);
    place.start();
    expect(givenUp()).toBe(0);
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

  it('waits for no other rule: one target that hangs keeps none waiting', async () => {
    const file = path.join(temporaryDirectory(), 'events');
    const place = placeWith(
      ruleOf({ on: ['started'], command: ['sleep', '30'] }),
      ruleOf({ on: ['started'], command: ['sh', '-c', `sleep 0.2; cat >> ${file}`] }),
    );
    const notifications = place.start();
    place.watch();
    place.report('Running');
    await place.clock.passUntil('the second', () => fs.existsSync(file) && place.waiting.length === 1);
    // A stop does not wait for it either.
    await place.clock.passWhile(notifications.stop());
    expect(place.waiting).toHaveLength(1);
  });
});

/** Jobs that were running, and have another state now. */
function reportMany(place: NotifyPlace, states: readonly string[]): JobId[] {
  return states.map((state, index) => {
    const jobId = `${600 + index}` as JobId;
    place.watch(jobId, 'Running');
    place.report(state, {}, jobId);
    return jobId;
  });
}

it('many events of a rule are gathered: one a minute, with their number and jobs', async () => {
  const { url, events } = await receiver();
  const place = placeWith(ruleOf({ on: ['failed'], url }));
  const underWay = new UnderWay();
  const notifications = place.start(undefined, underWay);
  const jobs = reportMany(place, Array(300).fill('Failed'));
  await place.clock.passUntil('them', () => place.waiting.length === 0 && events().length > 0);
  expect(events()).toMatchObject([{ type: 'failed', count: 300, jobs: jobs.slice(0, 100) }]);
  // Then ten in a minute by themselves, whatever configuration is read, and the others after it.
  await place.clock.pass(60_000);
  for (const jobId of jobs.slice(0, 13)) {
    if (jobId === jobs[5]) {
      await place.clock.passWhile(notifications.replace());
      place.start(undefined, underWay, true);
    }
    for (const state of ['Running', 'Failed']) {
      place.report(state, {}, jobId);
      await place.tick();
    }
  }
  expect(events()).toHaveLength(1 + 10);
  await place.clock.passUntil('the others', () => events().length === 1 + 13, 60_000);
});

it.each([
  ['ten', Array(10).fill('Failed'), Array(10).fill('1 failed')],
  ['eleven', Array(11).fill('Failed'), ['11 failed']],
  ['many of two types', [...Array(15).fill('Failed'), ...Array(15).fill('Finished')], ['15 failed', '15 finished']],
])('of events at once, %s are sent so', async (_, states, sent) => {
  const { url, events } = await receiver();
  const place = placeWith(ruleOf({ on: ['failed', 'finished'], url }));
  place.start();
  reportMany(place, states);
  // None waits for the next minute.
  await place.clock.passUntil('them', () => events().length === sent.length, 30_000);
  expect(events().map(({ type, count }) => `${count} ${type}`)).toEqual(sent);
});

it('many deliveries that were attempted keep no newer one waiting, and are combined with none', async () => {
  let isBroken = true;
  const { url, events } = await receiver(() => (isBroken ? 503 : 200));
  const place = withRunningJob(ruleOf({ on: ['started'], url }));
  const { outbox } = place.store;
  await place.clock.passUntil('a failure', () => outbox.all().some(({ lastError }) => lastError !== null));
  const attempted = outbox.all();
  // As an earlier version left them.
  for (let number = 0; number < 100; number++)
    for (const row of attempted) outbox.save({ ...row, deliveryId: `${number}` });
  isBroken = false;
  place.start();
  for (let jobId = 502; jobId < 514; jobId++) {
    place.watch(`${jobId}` as JobId);
    place.report('Running', {}, `${jobId}` as JobId);
  }
  await place.clock.passUntil('the newer ones', () => events().some(({ count }) => count > 1));
  expect(events().map(({ count }) => count)).toEqual([...Array(9).fill(1), 12]);
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

it('a line that matches all the time is one event a minute, and each match is counted', async () => {
  const { url, events } = await receiver();
  const place = placeWith(ruleOf({ match: 'ERROR', url }));
  place.start();
  place.watch();
  for (let second = 0; second < 300; second++) {
    place.grow('ERROR\n'.repeat(20));
    await place.tick();
  }
  await place.clock.passUntil('the rest', () => place.waiting.length === 0);
  const counted = events().reduce((sum, { count }) => sum + count, 0);
  expect(counted).toBe(6_000);
  expect(events().length).toBeLessThanOrEqual(17);
  expect(events().filter((event) => 'jobs' in event)).toEqual([]);
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
  await expect(send(rule, newEvent('test', 0, {}), options, new AbortController().signal)).rejects.toMatchObject({
    message: 'there is no /usr/sbin/sendmail',
    hint: 'install a mail server, or use command or url',
  });
  expect(asked.mock.calls.flat()).toEqual(['/usr/sbin/sendmail', '/usr/lib/sendmail']);
});
