/** The table "command" of docs/service.md: each command, run by each kind of user. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { programOf } from '../../../src/cli/program.ts';
import { apiPlace } from '../../support/api-place.ts';
import type { Ended } from '../../support/e2e-program.ts';

const PAGE = fs.readFileSync(new URL('../../../docs/service.md', import.meta.url), 'utf8');
const [, TABLE = ''] = /\n\| command \|[^\n]*\n\|[-|]*\n((?:\|[^\n]*\n)*)/.exec(PAGE) ?? [];
/** By command, as the page writes it: for root and the user of the agent, for members of its group, for others. */
const ROWS = new Map(
  TABLE.trim()
    .split('\n')
    .flatMap((row) => {
      const [, commands = '', ...cells] = row.split('|').map((cell) => cell.trim());
      return [...commands.matchAll(/`([^`]+)`/g)].map(([, command = '']) => [command, cells.slice(0, 3)] as const);
    }),
);

/** Arguments of those that have effects which a test can see; the others use nothing of an agent. */
const LINES = (job: string): Readonly<Record<string, readonly string[]>> => ({
  tail: ['tail', job],
  grep: ['grep', '-e', 'first', job],
  errors: ['errors', job, '--json'],
  status: ['status'],
  results: ['results', job],
  jobs: ['jobs'],
  wait: ['wait', job, '--timeout', '1s'],
  verify: ['verify', job],
  'notify --list': ['notify', '--list'],
  watch: ['watch', job],
  sync: ['sync', job],
  unwatch: ['unwatch', job, '--now'],
  run: ['run'],
  check: ['check'],
  view: ['view', '--no-open'],
  forget: ['forget', job, '--yes'],
  report: ['report', '-o', '-'],
  'notify --test': ['notify', '--test'],
  'watch --mine': ['watch', '--mine'],
});
/** Exit codes of a command that had its answer: `wait` when the time is up, `grep` and `errors` without a line. */
const DONE: Readonly<Record<string, readonly number[]>> = { wait: [12], grep: [0, 1], errors: [0, 1] };
const WHO = ['owner', 'member', 'other'] as const;

test('the table of docs/service.md is what each user sees', async (context) => {
  const { job, as } = await apiPlace(context, { notify: [{ on: ['failed'], command: ['true'] }] });
  const lines = LINES(job.jobId);
  const commands = new Set([...ROWS.keys()].map((command) => command.split(' ')[0]));
  expect([...commands].sort()).toEqual(
    programOf()
      .commands.map((one) => one.name())
      .sort(),
  );
  expect([...ROWS.keys()].filter((command) => !(command in lines)).sort()).toEqual([
    'completion',
    'demo',
    'help',
    'init',
    'sandbox',
    'version',
  ]);
  for (const [column, who] of WHO.entries()) {
    for (const [command, line] of Object.entries(lines)) {
      const cell = ROWS.get(command)?.[column] ?? '';
      // The running agent has the state; what removes the job would be missed by the others.
      if (who === 'owner' && ['run', 'forget', 'unwatch', 'view', 'watch --mine'].includes(command)) continue;
      const ended: Ended = await as(who, ...line).ended;
      const told = `${who}: ${command}: ${cell}\n${ended.code}\n${ended.stdout}${ended.stderr}`;
      const isDone = cell === 'yes' || cell === 'what they may read';
      const codes = DONE[command] ?? [0];
      if (isDone) expect(codes, told).toContain(ended.code);
      else {
        expect(codes, told).not.toContain(ended.code);
        expect(`${ended.stdout}${ended.stderr}`.replace(/\s+/g, ' '), told).toContain('the user nobody');
      }
    }
  }
});
