/** `agent demo --fleet` as people start it. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { FLEET_NODE } from '../../../../bench/fleet-node.ts';
import { expectNothingLeft, Program } from '../../../support/e2e-program.ts';
import { needs } from '../../../support/needs.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';

const OPTIONS = needs('postgres');

it(
  'kills one of three agents, stops another one, and ends with a table in which all files are equal',
  OPTIONS,
  async (context) => {
    // Not the one of the machine; and whoever PostgreSQL runs as has to get there.
    const directory = temporaryDirectory('/tmp', context);
    fs.chmodSync(directory, 0o755);
    const demo = new Program(['demo', '--fleet'], { cwd: directory, env: { TMPDIR: directory }, node: FLEET_NODE });
    const { code, stdout, stderr } = await demo.ended;
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/ben \(process \d+\) is dead; cleo \(process \d+\) stands still/);
    expect(stdout).toMatch(/After [\d.]+ s anna follows all 6 jobs/);
    expect(stdout).toMatch(/\nall \d+ files equal \([\d.]+ MiB\), in [\d.]+ s\n$/);
    for (const file of ['stdout', 'stderr', 'log', 'progress'])
      expect(
        stdout.match(new RegExp(`^\\d+/live/\\d+/${file}\\.log +[\\d,]+ {2}([0-9a-f]{12}) {2}\\1 {2}yes$`, 'gm')),
      ).toHaveLength(6);
    await expectNothingLeft(directory);
  },
);
