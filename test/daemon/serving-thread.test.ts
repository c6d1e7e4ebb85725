/** Who needs a thread waits until it reports that it serves, and is told if it ends before. */
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ServingThread } from '../../src/daemon/serving-thread.ts';
import { until } from '../support/e2e-until.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

function threadOf(lines: string, program = path.join(temporaryDirectory(), 'thread.mjs')) {
  if (path.isAbsolute(program))
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

it('who waits for a thread that cannot begin, or is closed, is told', async () => {
  const broken = threadOf(`throw new Error('no room');`);
  await broken.thread.use({});
  await expect(broken.thread.serving()).rejects.toThrow('no room');
  await until('the report', () => broken.events.includes('no room'));
  await broken.thread.close();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await broken.thread.use({ changed: true });
  await until('the next report', () => broken.events.length === 4);
  await broken.thread.close();
  expect(vi.getTimerCount(), 'it is not begun again').toBe(0);
  vi.useRealTimers();
  expect(broken.events).toEqual(['no room', 'for the first time', 'no room', 'for the first time']);
  const silent = threadOf(`parentPort.on('message', ({ kind }) => kind === 'close' && process.exit());`);
  await silent.thread.use({});
  const serving = expect(silent.thread.serving()).rejects.toThrow('it ended');
  await silent.thread.close();
  await serving;
});

it('a thread that the system does not start is started again, and fails nobody but who waits for it', async () => {
  // Node.js throws for this name at once, as it does at the limit of threads.
  const { thread, events } = threadOf('', 'thread.mjs');
  const why = expect.stringMatching(/^no thread can be started: /);
  await thread.use({});
  await expect(thread.serving()).rejects.toThrow('no thread can be started');
  await until('the next attempt', () => events.length === 4);
  expect(events).toEqual([why, 'for the first time', why, 'again']);
  await thread.close();
});

it('a thread that answers is left alone, however often it is asked; one that does not is ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const program = (answers: boolean) => `
    let pulses = 0;
    parentPort.on('message', ({ kind }) => {
      pulses += 1;
      if (pulses === 9) process.exit();
      if (${answers}) parentPort.postMessage({ kind });
      parentPort.postMessage({ kind: 'failure', message: String(pulses) });
    });
    parentPort.postMessage({ kind: 'serving', port: 0 });`;
  const eventsOf = async ({ events }: ReturnType<typeof threadOf>, seconds: number) => {
    await until('it to serve', () => events.splice(0).includes('serves'));
    for (let pulse = 1; pulse < seconds / 5; pulse++) {
      vi.advanceTimersByTime(5_000);
      await until('the pulse', () => events.includes(`${pulse}`));
    }
    vi.advanceTimersByTime(5_000);
    await until('its end', () => events.some((event) => event.startsWith('it ')));
    return events.splice(0).slice(-2);
  };
  const sound = threadOf(program(true));
  await sound.thread.use({});
  expect(await eventsOf(sound, 45)).toEqual(['it ended', 'for the first time']);
  expect(await eventsOf(sound, 45)).toEqual(['it ended', 'again']);
  const silent = threadOf(program(false));
  await silent.thread.use({});
  expect(await eventsOf(silent, 35)).toEqual(['it did not answer for 30 s', 'for the first time']);
});

it('who waits for a thread goes on when it serves; one that does not hear that it is to end is ended', async () => {
  // Nor does it miss a pulse.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { thread, events } = threadOf(`
    parentPort.on('message', () => {});
    parentPort.postMessage({ kind: 'failure', message: 'begins' });
    setTimeout(() => parentPort.postMessage({ kind: 'serving', port: 0 }), 50);`);
  await thread.use({});
  for (let times = 0; times < 2; times++) await thread.serving();
  const ends = vi.spyOn(Worker.prototype, 'terminate');
  onTestFinished(() => ends.mockRestore());
  await thread.close();
  expect(ends.mock.settledResults).toMatchObject([{ type: 'fulfilled' }]);
  expect(events).toEqual(['begins', 'serves']);
});

it('a thread that ends is begun again, and after it served for long, its next end is a new one', async () => {
  let aheadMs = 0;
  const now = performance.now.bind(performance);
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  onTestFinished(() => spy.mockRestore());
  const end = path.join(temporaryDirectory(), 'end');
  const { thread, events } = threadOf(`
    import fs from 'node:fs';
    if (fs.existsSync('${end}-always')) process.exit();
    setInterval(() => fs.existsSync('${end}') && (fs.rmSync('${end}'), process.exit()), 20);
    parentPort.on('message', ({ kind }) => (kind === 'close' ? process.exit() : parentPort.postMessage({ kind })));
    parentPort.postMessage({ kind: 'serving', port: 0 });`);
  await thread.use({});
  let endedAt = Number.NEGATIVE_INFINITY;
  const servesFor = async (ms: number) => {
    await until('it to serve', () => events.includes('serves'));
    expect(now() - endedAt, 'a pause').toBeGreaterThan(500);
    aheadMs += ms;
    fs.writeFileSync(end, '');
    await until('its end', () => events.includes('it ended'));
    endedAt = now();
    return events.splice(0).at(-1);
  };
  expect([await servesFor(0), await servesFor(30_000)]).toEqual(['for the first time', 'again']);
  await until('it to serve once more', () => events.includes('serves'));
  fs.writeFileSync(`${end}-always`, '');
  expect(await servesFor(61_000)).toBe('for the first time');
  await until('the end of one that serves nothing', () => events.includes('it ended'));
  expect(events.at(-1)).toBe('again');
});
