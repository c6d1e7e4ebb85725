/** `agent demo --fleet` as people start it. */
import fs from 'node:fs';
import { expect, it, type TestContext } from 'vitest';
import { FLEET_NODE } from '../../../../bench/fleet-node.ts';
import { expectNothingLeft, processesIn } from '../../../support/demo-processes.ts';
import { Program } from '../../../support/e2e-program.ts';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { needs } from '../../../support/needs.ts';

const OPTIONS = { ...PATIENCE, ...needs('postgres') };

/** A demo whose temporary directories are below one of the test. */
function startDemo({ onTestFinished }: TestContext, ...flags: readonly string[]) {
  // Not the one of the machine; and whoever PostgreSQL runs as has to get there.
  const directory = fs.mkdtempSync('/tmp/jobtail-test-');
  fs.chmodSync(directory, 0o755);
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }));
  const env = { TMPDIR: directory };
  return { directory, demo: new Program(['demo', '--fleet', ...flags], { cwd: directory, env, node: FLEET_NODE }) };
}

it.concurrent(
  'kills one of three agents, stops another one, and ends with a table in which all files are equal',
  OPTIONS,
  async (context) => {
    const { directory, demo } = startDemo(context);
    const { code, stdout, stderr } = await demo.ended;
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/ben \(process \d+\) is dead; cleo \(process \d+\) stands still/);
    expect(stdout).toMatch(/After [\d.]+ s anna follows all 6 jobs/);
    expect(stdout).toMatch(/\nall \d+ files equal \([\d.]+ MiB\), in [\d.]+ s\n$/);
    for (const file of ['stdout', 'stderr', 'log', 'progress'])
      expect(
        stdout.match(new RegExp(`^\\d+/live/\\d+/${file}\\.log +[\\d,]+ {2}([0-9a-f]{64}) {2}\\1 {2}yes$`, 'gm')),
      ).toHaveLength(6);
    await expectNothingLeft(directory);
  },
);

it.concurrent.for(['SIGINT', 'SIGKILL'] as const)(
  'leaves no server behind when %s comes in the middle',
  OPTIONS,
  async (signal, context) => {
    const { directory, demo } = startDemo(context);
    await until('the jobs to run', () => demo.stdout.includes('The jobs run'));
    expect(processesIn(directory).filter((command) => command.includes('postgres')).length).toBeGreaterThan(0);
    demo.signal(signal);
    const { code } = await demo.ended;
    if (signal === 'SIGINT') {
      expect(code).toBe(130);
      await expectNothingLeft(directory);
      return;
    }
    // Nothing of the demo runs any more that could end its agents; its database has a keeper.
    await until('the server to be gone', () => !processesIn(directory).some((command) => command.includes('postgres')));
    for (const command of processesIn(directory)) expect(command).not.toContain('postgres');
    await endProcessesIn(directory);
  },
);

/** What a program that was killed could not end. */
async function endProcessesIn(directory: string): Promise<void> {
  for (const name of fs.readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (fs.readlinkSync(`/proc/${name}/cwd`).startsWith(directory)) process.kill(Number(name), 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
  await until('all processes to be gone', () => processesIn(directory).length === 0);
}
