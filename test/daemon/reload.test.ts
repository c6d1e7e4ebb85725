/** What a reload does when the connection of a configuration fails, or is never taken. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Reload } from '../../src/daemon/reload.ts';
import { JobtailError } from '../../src/errors.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { HeldClock } from '../support/held-clock.ts';

async function reloadOf(connect: () => Promise<{ close(): Promise<void> }>) {
  const { file, config } = await restConfig();
  const clock = new HeldClock();
  const verdicts: (string | undefined)[] = [];
  const lines: unknown[][] = [];
  const say = (fields: object, phrase: string) => void lines.push([phrase, fields]);
  const reload = new Reload({
    current: config,
    connect,
    log: { ...SILENT, info: say, error: say },
    clock,
    onVerdict: (refused) => verdicts.push(refused),
  });
  return { reload, clock, verdicts, lines, file };
}

it('a hang-up whose connection fails is not forgotten: the next reading renews the connection', async () => {
  let fails = true;
  const made: string[] = [];
  const { reload, clock, verdicts } = await reloadOf(async () => {
    if (fails) throw new JobtailError('config', 'a certificate cannot be read');
    made.push('connection');
    return { close: async () => {} };
  });
  reload.check({ asked: true });
  await clock.passUntil('the refusal', () => verdicts.length === 1);
  expect(verdicts).toEqual(['a certificate cannot be read']);
  fails = false;
  reload.check({ asked: false });
  await clock.passUntil('the connection', () => made.length === 1);
  // An accepted reload is over: an unchanged file renews nothing.
  reload.check({ asked: false });
  await clock.passUntil('the verdict', () => verdicts.length === 3);
  expect(made.length).toBe(1);
  await reload.close();
});

it('a hang-up while a connection is made renews it once more: a file may have been read before', async () => {
  let made = 0;
  const { reload, clock } = await reloadOf(async () => {
    made += 1;
    if (made === 1) reload.check({ asked: true });
    return { close: async () => {} };
  });
  reload.check({ asked: true });
  await clock.passUntil('the second connection', () => made === 2);
  await clock.pass(10_000);
  await reload.close();
  expect(made).toBe(2);
});

it('a connection that is never taken is closed, by the next one and at the end', async () => {
  const closed: number[] = [];
  let made = 0;
  const { reload, clock } = await reloadOf(async () => {
    const number = ++made;
    return { close: async () => void closed.push(number) };
  });
  reload.check({ asked: true });
  await clock.passUntil('the first', () => made === 1);
  reload.check({ asked: true });
  await clock.passUntil('the second', () => made === 2 && closed.length === 1);
  await reload.close();
  expect(closed).toEqual([1, 2]);
});

it('each configuration is offered once, several changes at a time are read once, and none after the end', async () => {
  let made = 0;
  const { reload, clock, verdicts } = await reloadOf(async () => {
    made += 1;
    return { close: async () => {} };
  });
  const offered = [reload.next()];
  for (const times of [1, 2]) {
    for (let changes = 0; changes < 3; changes++) reload.check({ asked: true });
    await clock.passUntil('the connection', () => made === times);
  }
  offered.push(reload.next());
  expect((await clock.passWhile(Promise.all(offered))).length).toBe(2);
  expect([made, verdicts.length]).toEqual([2, 2]);
  reload.check({ asked: true });
  await reload.close();
  expect([clock.timers, made]).toEqual([0, 2]);
});

it('a refused configuration is reported once, and again when a reload is requested or after a valid one', async () => {
  const { reload, clock, verdicts, lines, file } = await reloadOf(async () => ({ close: async () => {} }));
  const valid = fs.readFileSync(file, 'utf8');
  const refused = valid.replace('"directory":"state"', '"directory":"elsewhere"');
  const read = async (text: string, asked: boolean) => {
    fs.writeFileSync(file, text);
    reload.check({ asked });
    await clock.pass(10_000);
  };
  for (const asked of [false, false, false, true]) await read(refused, asked);
  await read(valid, true);
  await read(refused, false);
  await read(valid.replace('"alice"', '"bob"'), false);
  await reload.close();
  const refusal = 'a change of state.directory needs a restart';
  expect(verdicts).toEqual([refusal, refusal, undefined, refusal, undefined]);
  const kept = ['reload refused, old configuration kept', { code: 'config', err: refusal }];
  const again = ['configuration unchanged, certificates and secrets read again', {}];
  expect(lines).toEqual([kept, kept, again, kept, ['configuration changed', { changes: ['auth'] }]]);
});
