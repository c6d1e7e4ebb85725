/** Who needs a thread waits until it reports that it serves, and is told if it ends before. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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
    onEnded: (_, why) => events.push(why),
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
