/** `agent demo` as people start it: the built program, in a process of its own. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { expectNothingLeft, processesIn } from '../support/demo-processes.ts';
import { Program } from '../support/e2e-program.ts';
import { until } from '../support/e2e-until.ts';
import { needsThat } from '../support/needs.ts';

const OPTIONS = { timeout: 180_000, ...needsThat(fs.existsSync('/proc/self/cmdline'), 'the demo: it needs /proc') };

/** A demo whose temporary directory is below a directory of the test. */
function startDemo({ onTestFinished }: TestContext, seconds = 4, ...flags: readonly string[]) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-test-'));
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }));
  const demo = new Program(['demo', '--seconds', String(seconds), ...flags], {
    cwd: directory,
    env: { TMPDIR: directory },
  });
  /** The path of a file of the demo, as soon as it is there. */
  const found = (...name: string[]) =>
    until(name.join('/'), () => {
      if (demo.end !== undefined) throw new Error(`the demo ended: ${demo.end.stderr}`);
      const [place = ''] = fs.readdirSync(directory);
      const file = path.join(directory, place, ...name);
      return place !== '' && fs.existsSync(file) && file;
    });
  return { directory, demo, found };
}

const readNumber = (file: string) => Number.parseInt(fs.readFileSync(file, 'utf8'), 10);

describe.concurrent('the demo', OPTIONS, () => {
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
      /\$ agent view --no-open .*\n +http:\/\/127\.0\.0\.1:\d+\/\?token=\S+\n/,
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
