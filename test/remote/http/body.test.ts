/** The end of a body whose call is stopped, and the time that it waits. */
import { PassThrough } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { CallStop, LimitedBody } from '../../../src/remote/http/body.ts';

function bodyOf(stream: PassThrough) {
  const target = { host: '127.0.0.1', port: '9' };
  const stop = new CallStop(new AbortController().signal, 60_000, target);
  return { body: new LimitedBody(stream, { stop, idleMs: 60_000, target }), stop };
}

it('a body whose call is stopped in the moment of its end does not look complete', async () => {
  const stream = new PassThrough();
  const { body, stop } = bodyOf(stream);
  stream.on('end', () => stop.stop(new JobtailError('timeout', 'too late')));
  stream.write('half');
  expect((await body.next()).value?.toString()).toBe('half');
  const last = body.next();
  stream.end();
  await expect(last).rejects.toMatchObject({ code: 'timeout' });
});

it('a body that is given up is received no further', async () => {
  const stream = new PassThrough();
  stream.write('begun');
  const { body } = bodyOf(stream);
  await body.next();
  await body.return();
  expect(stream.destroyed).toBe(true);
});

it('a body that makes progress is not ended by the time that it waited before', async () => {
  let now = 0;
  // Each piece comes within the limit of 60 s, all of them do not.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 25_000));
  onTestFinished(() => clock.mockRestore());
  const stream = new PassThrough();
  const { body } = bodyOf(stream);
  for (let pieces = 0; pieces < 5; pieces += 1) {
    setTimeout(() => stream.write(Buffer.alloc(1024)), 20);
    expect((await body.next()).value).toHaveLength(1024);
  }
});
