/** `agent demo` as people start it: the built program, in a process of its own. */
import { describe, expect, it } from 'vitest';
import { demoOptions, expectNothingLeft, processesIn, startDemo } from '../../support/demo-processes.ts';
import { until } from '../../support/e2e-until.ts';

describe.concurrent('the demo', demoOptions(), () => {
  it('kills the agent, starts it again, and ends with a table in which all files are equal', async (context) => {
    const { directory, demo } = startDemo(context);
    await until('the tasks to run', () => processesIn(directory).length >= 3);
    const { code, stdout, stderr } = await demo.ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/process \d+ is dead \(SIGKILL\)/);
    expect(stdout).toMatch(/502 stdout: [\d,]+ bytes are here; requested from byte [\d,]+ on/);
    expect(stdout).toMatch(/502 stdout {3}\| ./);
    expect(stdout, 'by its number alone').toContain('$ agent watch 501 -c config.yaml');
    expect(stdout, 'the address of its view').toMatch(
      /\$ agent view --no-open .*\n +http:\/\/127\.0\.0\.1:\d+\/\?ticket=\S+\n/,
    );
    expect(stdout).toMatch(/^ *501 +demo +Finished /m);
    expect(stdout).toContain('$ agent wait 501 --timeout 1s -c config.yaml');
    expect(stdout).toMatch(/rewritten {2}504 progress, generation 2\n/);
    expect(stdout).toMatch(/match {2}504 stderr, line \d+: done\n/);
    expect(stdout).toContain('8 verified against the raw bytes of the server');
    for (const task of [502, 504]) {
      for (const file of ['stdout', 'stderr', 'log', 'progress']) {
        expect(stdout).toMatch(
          new RegExp(`^live/${task}/${file}\\.log +[\\d,]+ {2}([0-9a-f]{64}) {2}\\1 {2}yes$`, 'm'),
        );
      }
    }
    expect(stdout).toMatch(
      /^results\/505\/results\/vystup\/large result ~3b1\.bin +2,000,000 {2}([0-9a-f]{64}) {2}\1 {2}yes$/m,
    );
    expect(stdout).toMatch(/\nall \d+ files equal \([\d.]+ MiB\), in [\d.]+ s\n$/);
    // What is no terminal gets no escape sequences.
    expect(stdout).not.toContain('\u001b');
    await expectNothingLeft(directory);
  });
});
