import { expect, it, onTestFinished, vi } from 'vitest';
import { sendBy } from '../../../../src/view/page/api.ts';
import { Numbers } from '../../../../src/view/page/file/numbers.ts';
import { until } from '../../../support/e2e-until.ts';

/** What a server sends; `breaks`: the connection does, behind that. */
function responseOf(lines: readonly object[], breaks: boolean): Response {
  const source = lines.map((line) => Buffer.from(`${JSON.stringify(line)}\n`));
  const body = new ReadableStream({
    pull(controller) {
      const next = source.shift();
      if (next !== undefined) controller.enqueue(next);
      else if (breaks) controller.error(new TypeError('network error'));
      else controller.close();
    },
  });
  return new Response(body);
}

it('the rows of an answer that breaks off are in the curve once, and those that follow come behind them', async () => {
  const asked: (string | null)[] = [];
  const answers = [
    responseOf([{ columns: ['loss'] }, { index: [0, 1], at: [0, 7], rows: [[1], [2]] }], true),
    responseOf(
      [
        { columns: ['loss'] },
        { index: [0, 1, 3], at: [0, 7, 14], rows: [[1], [2], [3]] },
        { done: true, to: 21, count: 5 },
      ],
      false,
    ),
    responseOf([{ columns: ['loss'] }, { index: [1], at: [21], rows: [[4]] }, { done: true, to: 28, count: 2 }], false),
  ];
  sendBy(async (to) => {
    asked.push(new URL(to, 'http://page').searchParams.get('from'));
    return answers.shift() ?? responseOf([], true);
  });
  const numbers = new Numbers(() => ({ job: '501', task: '9001', file: 'log' }), 0);
  await numbers.grow();
  expect(numbers.series.value).toMatchObject({ at: [], problem: 'network error' });
  await numbers.grow();
  await numbers.grow();
  numbers.close();
  // Rows that were not sent are counted.
  const columns = [
    [1, 2, 4, 7],
    [1, 2, 3, 4],
  ];
  expect(numbers.series.value).toEqual({ names: ['row', 'loss'], at: [0, 7, 14, 21], columns, problem: undefined });
  expect(asked).toEqual([null, null, '21']);
});

it('the rows that arrive while those before are on their way are asked for then, and again after a refusal for a moment', async () => {
  let bytes = 7;
  const refused = (status: number) =>
    new Response(JSON.stringify({ error: { message: `refused by ${status}` } }), {
      status,
      headers: { 'retry-after': '0.01' },
    });
  const answers = [
    () => {
      bytes = 14;
      void numbers.grow();
    },
    () => refused(429),
    () => refused(500),
    () => {},
    () => refused(400),
  ];
  sendBy(async (to) => {
    const from = Number(new URL(to, 'http://page').searchParams.get('from') ?? 0);
    const rows = Array.from({ length: (bytes - from) / 7 }, (_, index) => from + 7 * index);
    const answer = responseOf(
      [
        { columns: ['x'] },
        { index: rows.map((_, index) => index), at: rows, rows: rows.map((at) => [at]) },
        { done: true, to: bytes, count: rows.length },
      ],
      false,
    );
    return answers.shift()?.() ?? answer;
  });
  const numbers = new Numbers(() => ({ job: '501', task: '9001', file: 'log' }), 0);
  void numbers.grow();
  await until('the rows', () => numbers.series.value.at.length === 2);
  expect([numbers.series.value.problem, answers.length]).toEqual([undefined, 1]);
  const timers = vi.spyOn(globalThis, 'setTimeout');
  await numbers.grow();
  expect([numbers.series.value.problem, timers.mock.calls]).toEqual(['refused by 400', []]);
  timers.mockRestore();
  numbers.close();
  bytes = 21;
  await numbers.grow();
  expect(numbers.series.value.at).toEqual([0, 7]);
});

it('however many refusals come, the rows are asked for again once', async () => {
  const [begun, ended] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
  onTestFinished(() => void vi.restoreAllMocks());
  sendBy(async () => new Response('{}', { status: 429, headers: { 'retry-after': '5' } }));
  const numbers = new Numbers(() => ({ job: '501', task: '9001', file: 'log' }), 0);
  for (let times = 0; times < 3; times++) await numbers.grow();
  const left = () => {
    const made = begun.mock.calls.flatMap(([, ms], at) => (ms === 5_000 ? [begun.mock.results[at]?.value] : []));
    return made.filter((timer) => !ended.mock.calls.some(([each]) => each === timer)).length;
  };
  expect(left()).toBe(1);
  numbers.close();
  expect(left()).toBe(0);
});
