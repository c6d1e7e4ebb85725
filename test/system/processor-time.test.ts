import { spawn } from 'node:child_process';
import vm from 'node:vm';
import { expect, it } from 'vitest';
import { withinProcessorTime } from '../../src/system/clock.ts';

const run = (script: string) => (timeout: number) => vm.runInNewContext(script, {}, { timeout }) as unknown;

it('is what the script returns or throws', () => {
  expect(withinProcessorTime(50, run('6 * 7'))).toBe(42);
  expect(() => withinProcessorTime(50, run('throw new RangeError("too much")'))).toThrow('too much');
});

it('ends what runs for ever', () => {
  expect(withinProcessorTime(50, run('for (;;);'))).toBeUndefined();
});

it('is given again to what had none of it, whatever the clock says', () => {
  const stop = `sleep 0.05; kill -STOP ${process.pid}; sleep 0.4; kill -CONT ${process.pid}`;
  const others = spawn('sh', ['-c', `${stop}; ${stop}; ${stop}`]);
  for (const end = performance.now() + 1_500; performance.now() < end; )
    expect(withinProcessorTime(200, run('for (let i = 0, end = 1e7; i <= end; i++) if (i === end) "done"'))).toBe(
      'done',
    );
  others.unref();
});
