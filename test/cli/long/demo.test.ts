/** The demo where something differs, over REST, and when it is stopped in its middle. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { demoOptions, expectNothingLeft, processesIn, startDemo } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

describe.concurrent('the demo', demoOptions(), () => {
  it('ends with exit code 1 and says what differs', async (context) => {
    const { directory, demo, found } = startDemo(context);
    const mirrored = await found('mirror', '501', 'results', '503', 'results');
    fs.writeFileSync(path.join(mirrored, 'stray.dat'), 'nobody wrote this on the cluster');
    const { code, stdout } = await demo.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/^results\/503\/results\/stray\.dat +32 {2}- {2,}[0-9a-f]{12} {2}NO$/m);
    expect(stdout).toContain('results/503/results/stray.dat: the cluster has no such file');
    expect(stdout).toMatch(/\n1 of \d+ files not equal, in [\d.]+ s\n$/);
    await expectNothingLeft(directory);
  });

  it.for([
    ['REST of a release that loses directories', '--release 4.2', 'over REST, as release 4.2', 'protocol: rest'],
    ['REST of the newest release', '--release 6.4', 'over REST, as release 6.4', 'protocol: rest'],
    ['SOAP, with names of any characters', '--protocol soap', 'large result α.bin', 'fileTransferUrl: '],
  ] as const)('does the same over %s', async ([, flags, ...shown], context) => {
    const { directory, demo } = startDemo(context, undefined, ...flags.split(' '));
    const { code, stdout, stderr } = await demo.ended;
    expect([stderr, code]).toEqual(['', 0]);
    for (const text of shown) expect(stdout).toContain(text);
    expect(stdout).toMatch(/process \d+ is dead \(SIGKILL\)/);
    expect(stdout).toMatch(/^ *501 +demo +Finished /m);
    expect(stdout).toContain('12 verified against the raw bytes of the server');
    expect(stdout).toMatch(/\nall \d+ files equal \([\d.]+ MiB\), in [\d.]+ s\n$/);
    await expectNothingLeft(directory);
  });

  it.for(['SIGTERM', 'SIGHUP'] as const)(
    'leaves nothing behind when %s comes in the middle',
    async (signal, context) => {
      const { directory, demo } = startDemo(context, 60);
      await until('a line to arrive', () => demo.stdout.includes('502 stdout '));
      expect(processesIn(directory).length).toBeGreaterThanOrEqual(3);
      demo.signal(signal);
      const { code, stdout } = await demo.ended;
      expect(code).toBe(signal === 'SIGTERM' ? 143 : 130);
      expect(stdout).toMatch(/interrupted: everything is stopped and removed\n$/);
      await expectNothingLeft(directory);
    },
  );
});
