/** docs/events.md lists the log events of the program: each with its levels and fields, and no other. */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERROR_POLICIES } from '../src/errors.ts';
import { logEventsOf } from './support/log-events.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

interface Row {
  readonly levels: Set<string>;
  readonly fields: Set<string>;
}

const words = (cell: string) => cell.replaceAll('`', '').split(', ').filter(Boolean);

/** The rows of the document by their phrases. */
const listed = new Map(
  [
    ...fs
      .readFileSync(`${ROOT}docs/events.md`, 'utf8')
      .matchAll(/^\| `([^`]+)` \| ([a-z, ]+) \| ([^|]*?) ?\| [^|]+ \|$/gm),
  ].map(([, message = '', levels = '', fields = '']): [string, Row] => [
    message,
    { levels: new Set(words(levels)), fields: new Set(words(fields)) },
  ]),
);

/** What is only passed on has no words of its own: its words are found where they are passed. */
const events = logEventsOf(`${ROOT}src`).filter(({ message }) => /[a-z]/.test(message.replaceAll('{}', '')));

it('the source has log events', () => {
  expect(events.length).toBeGreaterThan(50);
  expect(events.map(({ message }) => message)).toEqual(
    expect.arrayContaining(['remote file truncated', 'signed in', 'operation recovered']),
  );
});

it('a log event is a fixed phrase, in lower case but for names', () => {
  const phrases = events.map(({ message }) => message);
  expect(phrases.filter((phrase) => phrase.includes('{}'))).toEqual([]);
  expect(phrases.filter((phrase) => !/^([a-z]|EndFileTransfer )/.test(phrase))).toEqual([]);
});

it('the document lists each log event, and no other', () => {
  expect([...listed.keys()].sort()).toEqual([...new Set(events.map(({ message }) => message))].sort());
});

it('what waits for a log event outside of the source waits for one that exists', () => {
  const awaited = ['bench', 'simulator'].flatMap((folder) =>
    fs
      .readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => [
        ...fs
          .readFileSync(`${ROOT}${folder}/${name}`, 'utf8')
          .matchAll(/(?:stderr|log|outputOf)\([^()]*\)\.includes\('([^']+)'\)/g),
      ])
      .map(([, phrase = '']) => phrase),
  );
  expect(awaited).toEqual(expect.arrayContaining(['agent ready', 'joined the fleet', 'view listening']));
  expect(awaited.filter((phrase) => !listed.has(phrase))).toEqual([]);
});

describe('a log event has the levels and fields of the document', () => {
  it.each([...listed])('%s', (message, { levels, fields }) => {
    const found = events.filter((event) => event.message === message);
    const inSource = new Set(found.flatMap(({ level }) => words(level)));
    // Where the source computes the level, an event may have one of them.
    if (found.some(({ level }) => level.includes(',')))
      expect([...inSource]).toEqual(expect.arrayContaining([...levels]));
    else expect(inSource).toEqual(levels);
    const named = new Set(found.flatMap((event) => event.fields));
    if (found.some(({ hasMoreFields }) => hasMoreFields))
      expect([...fields]).toEqual(expect.arrayContaining([...named]));
    else expect(fields).toEqual(named);
  });
});

it('the document lists each error code with its exit code, and no other', () => {
  const rows = fs.readFileSync(`${ROOT}docs/events.md`, 'utf8').matchAll(/^\| `([a-z-]+)` \| ([0-9]+) \| /gm);
  const codes = Object.fromEntries([...rows].map(([, code, exitCode]) => [code, Number(exitCode)]));
  expect(codes).toEqual(
    Object.fromEntries(Object.entries(ERROR_POLICIES).map(([code, { exitCode }]) => [code, exitCode])),
  );
});
