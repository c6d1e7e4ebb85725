/** Who needs a thread waits until it reports that it serves, and is told if it ends before. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ServingThread } from '../../src/daemon/serving-thread.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

function threadOf(lines: string) {
  const program = path.join(temporaryDirectory(), 'thread.mjs');
  fs.writeFileSync(program, `import { parentPort } from 'node:worker_threads';\n${lines}`);
  const events: string[] = [];
  const thread = new ServingThread<object>({
    program,
    onServing: () => events.push('serves'),
    onFailure: (why) => events.push(why),
    onEnded: (_, why, isFirst) => events.push(why, isFirst ? 'for the first time' : 'again'),
  });
  onTestFinished(() => thread.close());
  return { thread, events };
}

it('who waits for a thread goes on when it reports that it serves', async () => {
  const { thread, events } = threadOf(`
    parentPort.on('message', ({ kind }) => kind === 'close' && process.exit());
    parentPort.postMessage({ kind: 'failure', message: 'begins' });
    setTimeout(() => parentPort.postMessage({ kind: 'serving', port: 0 }), 50);`);
  await thread.use({});
  await thread.serving();
  expect(events).toEqual(['begins', 'serves']);
  await thread.serving();
});

it('who waits for a thread that cannot begin, or is closed, is told', async () => {
  const broken = threadOf(`throw new Error('no room');`);
  await broken.thread.use({});
  await expect(broken.thread.serving()).rejects.toThrow('no room');
  await until('the report', () => broken.events.includes('no room'));
  const silent = threadOf(`parentPort.on('message', ({ kind }) => kind === 'close' && process.exit());`);
  await silent.thread.use({});
  const serving = expect(silent.thread.serving()).rejects.toThrow('it ended');
  await silent.thread.close();
  await serving;
});

it('a thread that ends is begun again, and after it served for long, its next end is a new one', async () => {
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  onTestFinished(() => spy.mockRestore());
  const end = path.join(temporaryDirectory(), 'end');
  const { thread, events } = threadOf(`
    import fs from 'node:fs';
    setInterval(() => fs.existsSync('${end}') && (fs.rmSync('${end}'), process.exit()), 20);
    parentPort.on('message', ({ kind }) => (kind === 'close' ? process.exit() : parentPort.postMessage({ kind })));
    parentPort.postMessage({ kind: 'serving', port: 0 });`);
  await thread.use({});
  const servesFor = async (ms: number) => {
    await until('it to serve', () => events.includes('serves'));
    aheadMs += ms;
    fs.writeFileSync(end, '');
    await until('its end', () => events.includes('it ended'));
    return events.splice(0).at(-1);
  };
  expect([await servesFor(0), await servesFor(30_000), await servesFor(61_000)]).toEqual([
    'for the first time',
    'again',
    'for the first time',
  ]);
});
