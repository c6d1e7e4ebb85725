/** The demo over REST, and when it is stopped in its middle. */
import { describe, expect, it } from 'vitest';
import { demoOptions, expectNothingLeft, processesIn, startDemo } from '../../support/demo-processes.ts';
import { until } from '../../support/e2e-until.ts';

describe.concurrent('the demo', demoOptions(), () => {
  // One that loses directories, and one that has all the latest habits.
  it.for(['4.2', '6.4'])('does the same over REST of release %s', async (release, context) => {
    const { directory, demo } = startDemo(context, 4, '--protocol', 'rest', '--release', release);
    const { code, stdout, stderr } = await demo.ended;
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toContain(`over REST, as release ${release}`);
    expect(stdout).toContain('protocol: rest');
    expect(stdout).toMatch(/process \d+ is dead \(SIGKILL\)/);
    expect(stdout).toMatch(/│ 501 +│ demo +│ Finished +│/);
    expect(stdout).toContain('8 verified against the raw bytes of the server');
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
      expect(code).toBe(130);
      expect(stdout).toMatch(/interrupted: everything is stopped and removed\n$/);
      await expectNothingLeft(directory);
    },
  );

  it('leaves nothing behind when it is interrupted twice', async (context) => {
    const { directory, demo } = startDemo(context, 60);
    await until('a line to arrive', () => demo.stdout.includes('502 stdout '));
    demo.signal('SIGINT');
    demo.signal('SIGTERM');
    expect((await demo.ended).code).toBe(130);
    await expectNothingLeft(directory);
  });
});
