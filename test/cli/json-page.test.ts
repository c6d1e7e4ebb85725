/** docs/json.md names every command with `--json`; long/json-keys.test.ts compares its keys. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { EXIT_CODES } from '../../src/cli/help.ts';
import { programOf } from '../../src/cli/program.ts';
import { type JobReport, ofFleet } from '../../src/cli/show/status-report.ts';
import { EXIT } from '../../src/errors.ts';
import type { AgentRow } from '../../src/fleet/agents/agents.ts';

const page = fs.readFileSync(fileURLToPath(new URL('../../docs/json.md', import.meta.url)), 'utf8');
const [forms = '', codes = ''] = page.split('\n## Exit codes\n');

it('the page has a row or a section for each command with --json, and for no other', () => {
  const commands = programOf().commands.filter(({ options }) => options.some(({ long }) => long === '--json'));
  const rows = [...forms.slice(forms.indexOf('| command | keys |')).matchAll(/^\| `([a-z]+)/gm)];
  const onPage = new Set(['status', ...rows.map(([, name = '']) => name)]);
  expect([...onPage].sort()).toEqual(commands.map((command) => command.name()).sort());
});

it('the page has the keys that only a fleet prints, and no others', () => {
  const [, text = ''] = /\nIn a \[fleet\]\S+ ([\s\S]*?)\n\n/.exec(forms) ?? [];
  const onPage = [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const job = { jobId: '1' } as JobReport;
  const agent: AgentRow = {
    ...{ name: 'anna', host: 'here', pid: 1, version: '1', view: null, state: 'alive', startedAt: 1, seenAt: 1 },
    ...{ jobs: 1, maxJobs: 1, pollAgeMs: null, callsLastMinute: 0, lacks: null, notFollowed: 0 },
  };
  const { jobs, ...others } = ofFleet([job], [agent], []);
  const keys = [others, ...others.agents, ...jobs].flatMap((one) => Object.keys(one));
  expect([...new Set(onPage)].sort()).toEqual(keys.filter((key) => key !== 'jobId').sort());
});

it('the page has the exit codes of the program, in the words of the help', () => {
  const rows = EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`);
  expect(codes.trim().split('\n').slice(4)).toEqual(rows);
  expect(EXIT_CODES.map(([code]) => code).sort()).toEqual(Object.values(EXIT).sort());
});
