/** What a reload does when the connection of a configuration fails, or is never taken. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Reload } from '../../src/daemon/reload.ts';
import { JobtailError } from '../../src/errors.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { HeldClock } from '../support/held-clock.ts';

/** A reload that makes connections with numbers; `onConnect` is called before. */
async function reloadOf(onConnect: (number: number) => void = () => {}) {
  const { file, config } = await restConfig();
  const clock = new HeldClock();
  const [made, closed]: [number[], number[]] = [[], []];
  const verdicts: (string | undefined)[] = [];
  const lines: unknown[][] = [];
  const say = (fields: object, phrase: string) => void lines.push([phrase, fields]);
  const reload = new Reload({
    current: config,
    connect: async () => {
      const number = made.length + 1;
      onConnect(number);
      made.push(number);
      return { close: async () => void closed.push(number) };
    },
    log: { ...SILENT, info: say, error: say },
    clock,
    onVerdict: (refused) => verdicts.push(refused),
  });
  const areMade = (count: number) => clock.passUntil(`connection ${count}`, () => made.length === count);
  return { reload, clock, made, closed, verdicts, lines, file, areMade };
}

it('a hang-up whose connection fails is not forgotten: the next reading renews the connection', async () => {
  let fails = true;
  const { reload, clock, made, verdicts, areMade } = await reloadOf(() => {
    if (fails) throw new JobtailError('config', 'a certificate cannot be read');
  });
  reload.check({ asked: true });
  await clock.passUntil('the refusal', () => verdicts.length === 1);
  expect(verdicts).toEqual(['a certificate cannot be read']);
  fails = false;
  reload.check({ asked: false });
  await areMade(1);
  // An accepted reload is over: an unchanged file renews nothing.
  reload.check({ asked: false });
  await clock.passUntil('the verdict', () => verdicts.length === 3);
  expect(made).toEqual([1]);
  await reload.close();
});

it('a hang-up while a connection is made renews it once more: a file may have been read before', async () => {
  const { reload, clock, made, areMade } = await reloadOf((number) => {
    if (number === 1) reload.check({ asked: true });
  });
  reload.check({ asked: true });
  await areMade(2);
  await clock.pass(10_000);
  await reload.close();
  expect(made).toEqual([1, 2]);
});

it('each configuration is offered once, several changes at a time are read once, and what is never taken is closed', async () => {
  const { reload, clock, made, closed, verdicts, areMade } = await reloadOf();
  const offered = [reload.next()];
  for (const times of [1, 2]) {
    for (let changes = 0; changes < 3; changes++) reload.check({ asked: true });
    await areMade(times);
  }
  offered.push(reload.next());
  expect((await clock.passWhile(Promise.all(offered))).length).toBe(2);
  expect([made, verdicts.length, closed]).toEqual([[1, 2], 2, []]);
  for (const times of [3, 4]) {
    reload.check({ asked: true });
    await areMade(times);
  }
  await clock.passUntil('the end of the one before', () => closed.length === 1);
  reload.check({ asked: true });
  await reload.close();
  expect([clock.timers, made.length, closed]).toEqual([0, 4, [3, 4]]);
});

it('a refused configuration is reported once, and again when a reload is requested or after a valid one', async () => {
  const { reload, clock, verdicts, lines, file } = await reloadOf();
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
