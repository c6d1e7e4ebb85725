/**
 * The documents name the test behind each sentence of a promise, and behind each hostile input: it has to be there. They
 * name times and sizes of the program: these are the ones that it has.
 */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PERSISTS_MS } from '../src/agent/live/debounce.ts';
import { IDLE_INTERVAL_MS, INTERVAL_MS } from '../src/agent/loop/job-states.ts';
import { LONG_BACKLOG_BYTES } from '../src/agent/poll/file-poll.ts';
import { MAX_INTERVAL_MS } from '../src/agent/results/ledger.ts';
import * as share from '../src/agent/server-share.ts';
import { FIRST_TASKS_MS } from '../src/cli/commands/watch.ts';
import { PACE } from '../src/cli/show/pass.ts';
import * as metricsServer from '../src/daemon/metrics-port.ts';
import * as readiness from '../src/fleet/readiness.ts';
import { MAX_RETRY_AFTER_MS } from '../src/remote/http/http-client.ts';
import * as signIn from '../src/remote/signin/sign-in.ts';
import { BUSY_TIMEOUT_MS } from '../src/store/database.ts';
import { HEARTBEAT_MS } from '../src/view/http/event-routes.ts';
import { TICKET_MS } from '../src/view/token.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const pageOf = (name: string, folder = 'docs/') => fs.readFileSync(`${root}${folder}${name}`, 'utf8');

/** The items of a list, each in one line. */
const itemsOf = (page: string): string[] =>
  page
    .replaceAll(/\n {2,}/g, ' ')
    .split('\n')
    .filter((line) => /^(?:\d+\.|-) /.test(line));

const [promises = '', others = ''] = pageOf('guarantees.md').split(/\n(?=## When the raw bytes)/);
const [tests = '', hostile = ''] = pageOf('dev/evidence.md').split(/\n(?=## A service that lies)/);

/** The guarantees: `A fleet 1` for a numbered one, the bold words of another. */
const guarantees = promises
  .split(/\n## /)
  .slice(1)
  .flatMap((section) => {
    const title = section.slice(0, section.indexOf('\n'));
    return itemsOf(section).map((item) => {
      const [, number, words = ''] = /^(?:(\d+)\.|- \*\*(.+?)\.?\*\*)/.exec(item) ?? [];
      return number === undefined ? words : `${title} ${number}`;
    });
  });

/** Each guarantee, and what shows it. */
const shownGuarantees = itemsOf(tests).map((item): [string, string] => {
  const [, guarantee = '', shownBy = ''] = /^- \*\*(.+?):\*\* (.+)$/.exec(item) ?? [];
  return [guarantee, shownBy];
});

/** The same of each row of the tables of a page. */
const rowsOf = (page: string): [string, string][] =>
  page
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| input \|/.test(line))
    .map((line) => line.split(' | '))
    .map((cells) => [cells[0]?.slice(2) ?? '', cells.at(-1) ?? '']);

const shown = [...shownGuarantees, ...rowsOf(hostile)];

it('each guarantee names what shows it', () => {
  expect(guarantees.length).toBeGreaterThan(50);
  expect(shownGuarantees.map(([guarantee]) => guarantee)).toEqual(guarantees);
  expect(shown.length).toBeGreaterThan(80);
});

it.each([...shown, ['what is not guaranteed', others]])('%s is shown by a test that exists', (_, shownBy) => {
  const named = shownBy.matchAll(/`(test\/[^`]+)`((?:,? "[^"]+")*)/g);
  let tests = 0;
  for (const [, file = '', names = ''] of named) {
    const text = fs.readFileSync(root + file, 'utf8');
    for (const [, name = ''] of names.matchAll(/"([^"]+)"/g)) {
      expect(
        [`'${name}`, `\`${name}`].some((start) => text.includes(start)),
        `${file}: ${name}`,
      ).toBe(true);
    }
    tests++;
  }
  expect(tests).toBeGreaterThan(0);
});

/** A document, a phrase with `{}` for a value of the program, and that value. */
const CONSTANTS: readonly (readonly [document: string, phrase: string, value: string])[] = [
  ['ARCHITECTURE.md', 'If a difference is still undecided after {}', time(PERSISTS_MS.tail)],
  ['ARCHITECTURE.md', 'a shorter file for {}', time(PERSISTS_MS.shorter)],
  ['guarantees.md', 'If it is still ambiguous after {}, the agent downloads', time(PERSISTS_MS.tail)],
  ['guarantees.md', 'has a backlog, and makes no progress for {}, has an error', time(PERSISTS_MS.stuck)],
  ['guarantees.md', 'The first fill of a file longer than {} downloads its raw bytes', size(LONG_BACKLOG_BYTES)],
  ['guarantees.md', 'The agent waits {} at most, and a date', time(MAX_RETRY_AFTER_MS)],
  ['guarantees.md', 'Each attempt waits {} for the lock', time(BUSY_TIMEOUT_MS)],
  ['dev/evidence.md', '{} at most; a date counts by the server', time(MAX_RETRY_AFTER_MS)],
  ['dev/servers.md', 'one that makes the file shorter has to be seen for {}.', time(PERSISTS_MS.shorter)],
  ['dev/servers.md', 'for its `Retry-After`, up to {}, otherwise', time(MAX_RETRY_AFTER_MS)],
  ['dev/servers.md', 'otherwise for {}, doubling', time(share.FIRST_PAUSE_MS)],
  ['dev/servers.md', 'doubling up to {}. `service.requestsPerMinute`', time(share.MAX_PAUSE_MS)],
  ['dev/servers.md', 'After a fault, no sign-in is sent for {}, then', time(signIn.FIRST_PAUSE_MS)],
  ['dev/servers.md', 'at most {}. After a refusal', time(signIn.MAX_PAUSE_MS)],
  ['dev/servers.md', 'After a refusal, none is sent for {}, then', time(signIn.FIRST_PAUSE_AFTER_REFUSAL_MS)],
  ['dev/servers.md', 'at most {}, unless the file of the secret', time(signIn.MAX_PAUSE_AFTER_REFUSAL_MS)],
  ['dev/servers.md', 'The agent requests the list every {}, or every', time(INTERVAL_MS)],
  ['dev/servers.md', 'or every {} while it follows no job', time(IDLE_INTERVAL_MS)],
  ['monitoring.md', 'a request that takes longer than {} is ended', time(metricsServer.REQUEST_MS)],
  ['monitoring.md', 'Beyond {} connections', String(metricsServer.MAX_CONNECTIONS)],
  ['results.md', '`results.intervalSeconds`, at most {}', time(MAX_INTERVAL_MS)],
  ['results.md', 'a line every {} elsewhere', time(PACE.line.everyMs)],
  ['fleet.md', 'the first two must last {}', time(readiness.PERSISTS_MS)],
  ['fleet.md', 'After {}, an agent that is not ready acquires one job', time(readiness.PAUSE_MS)],
  ['fleet.md', 'After each failed trial the pause doubles, up to {}.', time(readiness.MAX_PAUSE_MS)],
  ['view.md', 'which opens the view once, within {}', time(TICKET_MS)],
  ['view.md', 'a stream sends something every {}', time(HEARTBEAT_MS)],
  ['commands.md', 'waits up to {} for the first tasks', time(FIRST_TASKS_MS)],
];

/** A time as documents write it: `30 s`, `5 min`, `1 h`. */
function time(ms: number): string {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}

function size(bytes: number): string {
  return `${bytes / 1024} KiB`;
}

const NUMBERS = ['a', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const UNIT_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^seconds?$/, 's'],
  [/^minutes?$/, 'min'],
  [/^hours?$/, 'h'],
];

/** `ten seconds`, `An hour` and `30 seconds` as `10 s`, `1 h` and `30 s`. */
function normalized(words: string): string {
  const [number = '', unit = ''] = words.toLowerCase().split(' ');
  const at = NUMBERS.indexOf(/^(?:an?|one)$/.test(number) ? 'a' : number);
  const short = UNIT_WORDS.find(([word]) => word.test(unit))?.[1] ?? unit;
  return `${at < 0 ? number : at + 1} ${short}`.trim();
}

describe('a value of the program in a document', () => {
  it('is read in words and in figures', () => {
    expect(['ten seconds', 'An hour', '30 seconds', '0.5 s', 'a minute', '32'].map(normalized)).toEqual([
      ...['10 s', '1 h', '30 s', '0.5 s', '1 min', '32'],
    ]);
    expect([30_000, 500, 60_000, 900_000, 3_600_000].map(time)).toEqual(['30 s', '0.5 s', '1 min', '15 min', '1 h']);
  });

  it.each(CONSTANTS)('%s: %s is %s', (document, phrase, value) => {
    const isAbove = /^[A-Z]+\.md$/.test(document);
    const text = pageOf(document, isAbove ? '' : 'docs/').replaceAll(/\s+/g, ' ');
    const [before = '', after = ''] = phrase
      .split('{}')
      .map((words) => words.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const found = [
      ...text.matchAll(new RegExp(`${before}([\\w.]+(?: (?:s|seconds?|min|minutes?|h|hours?|KiB)\\b)?)${after}`, 'g')),
    ];
    expect(
      found.map(([, words = '']) => normalized(words)),
      phrase,
    ).toEqual([value.replace(' KiB', ' kib')]);
  });
});
