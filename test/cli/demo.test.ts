/** `agent demo` as people start it: the built program, in a process of its own. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { demoOptions, expectNothingLeft, processesIn, startDemo } from '../support/demo-processes.ts';
import { until } from '../support/e2e-until.ts';

const readNumber = (file: string) => Number.parseInt(fs.readFileSync(file, 'utf8'), 10);

describe.concurrent('the demo', demoOptions(), () => {
  it('kills the agent, starts it again, and ends with a table in which all files are equal', async (context) => {
    const { directory, demo } = startDemo(context);
    await until('the tasks to run', () => processesIn(directory).length >= 3);
    const { code, stdout, stderr } = await demo.ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/process \d+ is dead \(SIGKILL\)/);
    expect(stdout).toMatch(/502 stdout: [\d,]+ bytes are here; asked for from byte [\d,]+ on/);
    expect(stdout).toMatch(/502 stdout {3}\| ./);
    expect(stdout, 'by its number alone').toContain('$ agent watch 501 -c config.yaml');
    expect(stdout, 'the address of its view').toMatch(
      /\$ agent view --no-open .*\n +http:\/\/127\.0\.0\.1:\d+\/\?ticket=\S+\n/,
    );
    expect(stdout).toMatch(/│ 501 +│ demo +│ Finished +│/);
    expect(stdout).toContain('8 verified against the raw bytes of the server');
    for (const task of [502, 504]) {
      for (const file of ['stdout', 'stderr', 'log', 'progress']) {
        expect(stdout).toMatch(
          new RegExp(`^live/${task}/${file}\\.log +[\\d,]+ {2}([0-9a-f]{64}) {2}\\1 {2}yes$`, 'm'),
        );
      }
    }
    expect(stdout).toMatch(
      /^results\/505\/results\/výstup\/large result α\.bin +2,000,000 {2}([0-9a-f]{64}) {2}\1 {2}yes$/m,
    );
    expect(stdout).toMatch(/\nall \d+ files equal \([\d.]+ MiB\), in [\d.]+ s\n$/);
    // What is no terminal gets no escape sequences.
    expect(stdout).not.toContain('\u001b');
    await expectNothingLeft(directory);
  });

  it('ends with exit code 1 and says what differs', async (context) => {
    const { directory, demo, found } = startDemo(context);
    const mirrored = await found('mirror', '501', 'results', '503', 'results');
    fs.writeFileSync(path.join(mirrored, 'stray.dat'), 'nobody wrote this on the cluster');
    const { code, stdout } = await demo.ended;
    expect(code).toBe(1);
    expect(stdout).toMatch(/^results\/503\/results\/stray\.dat +32 {2}- {2,}[0-9a-f]{64} {2}NO$/m);
    expect(stdout).toContain('results/503/results/stray.dat: the cluster has no such file');
    expect(stdout).toMatch(/\n1 of \d+ files not equal, in [\d.]+ s\n$/);
    await expectNothingLeft(directory);
  });

  it('fails, and leaves nothing behind, when the agent dies', async (context) => {
    const { directory, demo, found } = startDemo(context, 60);
    const pidFile = await found('state', 'agent.pid');
    const pid = await until('its pid', () => /^\d+\n/.test(fs.readFileSync(pidFile, 'utf8')) && readNumber(pidFile));
    process.kill(pid, 'SIGKILL');
    const { code, stderr } = await demo.ended;
    expect(code).not.toBe(0);
    expect(stderr).toContain('the agent ended by itself (SIGKILL)');
    await expectNothingLeft(directory);
  });
});
