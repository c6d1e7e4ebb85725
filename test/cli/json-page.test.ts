/** docs/json.md names every command with `--json`, and the keys that it prints. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { Verification } from '../../src/agent/pass/verification.ts';
import { execute } from '../../src/cli/execute.ts';
import { EXIT_CODES } from '../../src/cli/help.ts';
import { programOf } from '../../src/cli/program.ts';
import { type JobReport, ofFleet } from '../../src/cli/show/status-report.ts';
import { EXIT } from '../../src/errors.ts';
import type { AgentRow } from '../../src/fleet/agents/agents.ts';
import { captured } from './own-state.ts';

const page = fs.readFileSync(fileURLToPath(new URL('../../docs/json.md', import.meta.url)), 'utf8');
const [forms = '', codes = ''] = page.split('\n## Exit codes\n');

it('the page has a row or a section for each command with --json, and for no other', () => {
  const commands = programOf().commands.filter(({ options }) => options.some(({ long }) => long === '--json'));
  const rows = [...forms.slice(forms.indexOf('| command | keys |')).matchAll(/^\| `([a-z]+)/gm)];
  const onPage = new Set(['status', ...rows.map(([, name = '']) => name)]);
  expect([...onPage].sort()).toEqual(commands.map((command) => command.name()).sort());
});

/** The names in code of a text; values are in quotes. */
const namesIn = (text: string) => [...text.matchAll(/`([a-z]\w*)`/g)].map(([, name = '']) => name);

/** At every depth. A time of the middleware is a value; what is in an event, or of a module, has another page or no name. */
function keysIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(keysIn);
  if (typeof value !== 'object' || value === null || Object.keys(value).join() === 'text,ms') return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    key,
    ...(key === 'modules' || key === 'event' ? [] : keysIn(inner)),
  ]);
}

it('the page has each key that a command prints on the pages of test/cli/printed.test.ts, and no other', async () => {
  const [, ofStatus = '', , ofOthers = ''] = forms.split(
    /\n(?:## (?:agent status --json|The other commands)|In a \[fleet\])/,
  );
  const rows = [...ofOthers.matchAll(/^\| `([a-z -]+)` \| (.*) \|$/gm)];
  const onPage = new Map(rows.map(([, command = '', cell = '']) => [command, new Set(namesIn(cell))]));
  onPage.set('status', new Set(namesIn(ofStatus)));
  const version = captured();
  await execute(['version', '--json']);
  // As `complete` compares, and while a command follows jobs in the place of an agent.
  const cluster: Verification['cluster'] = { files: 1, links: 1 };
  const outputs: [line: string, output: string][] = [
    ['version --json', version()],
    ['verify --json', JSON.stringify(cluster)],
    ['status --json', JSON.stringify({ command: 1 })],
  ];
  for (const file of fs.readdirSync(import.meta.dirname).filter((name) => /^printed.*\.txt$/.test(name))) {
    const text = fs.readFileSync(path.join(import.meta.dirname, file), 'utf8');
    for (const [, line = '', output = ''] of text.matchAll(/^\$ agent (.*)\n((?:[{} ].*\n)+)= \d+$/gm)) {
      if (!/--(?:json|probe)/.test(line)) continue;
      for (const one of line.startsWith('grep') ? output.trim().split('\n') : [output]) outputs.push([line, one]);
    }
  }
  const printed = new Map([...onPage.keys()].map((command) => [command, new Set<string>()]));
  for (const [line, output] of outputs) {
    const [name = ''] = line.split(' ');
    const more = /--(?:list|test|probe)/.exec(line)?.[0] ?? '';
    for (const key of keysIn(JSON.parse(output))) printed.get(`${name} ${more}`.trim())?.add(key);
  }
  // Of each command.
  for (const [command, keys] of printed) if (command !== 'version') keys.delete('version');
  const sorted = (keys: typeof printed) =>
    Object.fromEntries([...keys].map(([command, names]) => [command, [...names].sort()]));
  expect(sorted(printed)).toEqual(sorted(onPage));
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
