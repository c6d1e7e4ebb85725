import { expect, it } from 'vitest';
import { sendBy } from '../../../../src/view/page/api.ts';
import { Numbers } from '../../../../src/view/page/file/numbers.ts';

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
    responseOf([{ columns: ['loss'] }, { at: [0, 7], rows: [[1], [2]] }], true),
    responseOf([{ columns: ['loss'] }, { at: [0, 7, 14], rows: [[1], [2], [3]] }, { done: true, to: 21 }], false),
    responseOf([{ columns: ['loss'] }, { at: [21], rows: [[4]] }, { done: true, to: 28 }], false),
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
  const columns = [
    [1, 2, 3, 4],
    [1, 2, 3, 4],
  ];
  expect(numbers.series.value).toEqual({ names: ['row', 'loss'], at: [0, 7, 14, 21], columns, problem: undefined });
  expect(asked).toEqual([null, null, '21']);
});
