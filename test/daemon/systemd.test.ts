/** The protocol of sd_notify(3), over a real socket. */
import Module, { syncBuiltinESMExports } from 'node:module';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createNotifier, reloading } from '../../src/daemon/systemd.ts';
import { until } from '../support/e2e-until.ts';
import { needsThat } from '../support/needs.ts';
import { datagramsAreMissing, notifySocket } from '../support/service-notify-socket.ts';

const MODULE = needsThat(!datagramsAreMissing(), 'sd_notify: the optional module unix-dgram is not installed');

describe('the notifier', MODULE, () => {
  it('sends the fields of a message as lines, one message after the other', async (context) => {
    const socket = notifySocket(context);
    const notifier = createNotifier({ env: { NOTIFY_SOCKET: socket.path }, pid: 7, onProblem: expect.unreachable });
    notifier.send({ READY: '1', STATUS: 'following 2 jobs' });
    notifier.send({ STATUS: 'a line\nand  a=b\u001b[2J\u009b' });
    await until('both', () => socket.messages.length === 2);
    notifier.close();
    expect(socket.messages).toEqual([
      { READY: '1', STATUS: 'following 2 jobs' },
      { STATUS: 'a line and a=b\\u{001B}[2J\\u{009B}' },
    ]);
  });

  it('announces a reload with the monotonic time in microseconds', () => {
    const before = process.hrtime.bigint() / 1000n;
    const { RELOADING, MONOTONIC_USEC } = reloading();
    expect(RELOADING).toBe('1');
    expect(BigInt(MONOTONIC_USEC ?? 0)).toBeGreaterThanOrEqual(before);
    expect(BigInt(MONOTONIC_USEC ?? 0)).toBeLessThanOrEqual(process.hrtime.bigint() / 1000n);
  });

  it('takes the watchdog of its own process, and takes the variables out of the environment', (context) => {
    const socket = notifySocket(context);
    const env = (pid?: string, microseconds = '30000000') => ({
      NOTIFY_SOCKET: socket.path,
      WATCHDOG_USEC: microseconds,
      ...(pid === undefined ? {} : { WATCHDOG_PID: pid }),
      OTHER: 'stays',
    });
    const made = [env(), env('7'), env('8'), env('7', '0')].map((variables) => {
      const notifier = createNotifier({ env: variables, pid: 7, onProblem: expect.unreachable });
      notifier.close();
      expect(variables).toEqual({ OTHER: 'stays' });
      return notifier.watchdogMs;
    });
    expect(made).toEqual([30_000, 30_000, undefined, undefined]);
  });

  it('logs once that nothing listens at the socket, and sends what was lost with the next message', async (context) => {
    const socket = notifySocket(context);
    const onProblem = vi.fn();
    const env = { NOTIFY_SOCKET: `${socket.path}.later` };
    const notifier = createNotifier({ env, pid: 7, onProblem });
    for (const fields of [{ READY: '1' }, { STATUS: 'one' }]) {
      notifier.send(fields);
      expect(onProblem).toHaveBeenCalledOnce();
    }
    const { renameSync } = await import('node:fs');
    renameSync(socket.path, `${socket.path}.later`);
    notifier.send({ STATUS: 'two' });
    await until('the message', () => socket.messages.length === 1);
    notifier.send({ STATUS: 'three' });
    await until('the next message', () => socket.messages.length === 2);
    expect(socket.messages).toEqual([{ READY: '1', STATUS: 'two' }, { STATUS: 'three' }]);
    renameSync(`${socket.path}.later`, socket.path);
    for (let times = 0; times < 2; times++) notifier.send({ STATUS: 'four' });
    expect(onProblem).toHaveBeenCalledTimes(2);
    notifier.close();
  });
});

describe('without systemd', () => {
  it.each([{}, { NOTIFY_SOCKET: '' }])('no message is sent, with %j', (env) => {
    const onProblem = vi.fn();
    const notifier = createNotifier({ env, pid: 7, onProblem });
    notifier.send({ READY: '1' });
    notifier.close();
    expect(notifier.watchdogMs).toBeUndefined();
    expect(onProblem).not.toHaveBeenCalled();
  });

  it('says that a socket without a path cannot be used, or that the module is not there', () => {
    const onProblem = vi.fn();
    createNotifier({ env: { NOTIFY_SOCKET: '@abstract' }, pid: 7, onProblem }).send({ READY: '1' });
    const required = vi.spyOn(Module, 'createRequire').mockReturnValue((() => {
      throw new Error('Cannot find module\nRequire stack:');
    }) as never);
    syncBuiltinESMExports();
    onTestFinished(() => {
      required.mockRestore();
      syncBuiltinESMExports();
    });
    createNotifier({ env: { NOTIFY_SOCKET: '/run/x' }, pid: 7, onProblem }).send({ READY: '1' });
    expect(onProblem.mock.calls.flat()).toEqual([
      'NOTIFY_SOCKET is an abstract socket (@abstract), which cannot be used: set Type=exec in the unit',
      'unix-dgram cannot be loaded (Cannot find module): run npm rebuild unix-dgram',
    ]);
  });
});
