import fs from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { startOfLastLines, TailedMirrors } from '../../../src/cli/show/line-tail.ts';
import type { JobId } from '../../../src/job.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';

const JOB = '501' as JobId;

/** A tail of one file of the job, with a clock that only the test moves. */
function tailOf({ raw = false, prefixes = true }) {
  const directory = temporaryDirectory();
  const file = path.join(directory, JOB, 'live', '9001', 'stdout.log');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '');
  const lines: string[] = [];
  let nowMs = 0;
  const tail = new TailedMirrors(
    (line) => lines.push(stripVTControlCharacters(line).replace(/^9001 stdout \| /, '')),
    { mirror: { directory, keepGenerations: 0 }, jobIds: [JOB], file: ['stdout'] },
    { now: () => nowMs, raw, prefixes },
  );
  tail.add();
  const look = (passedMs: number) => {
    nowMs += passedMs;
    tail.tick();
    return lines.splice(0);
  };
  const end = () => {
    tail.end();
    return lines.splice(0);
  };
  return { directory, file, look, end };
}

/** Bytes that come, milliseconds that pass; the lines that are written then. Another generation begins at CUT. */
type Step = string | Buffer | number | readonly string[];
const CUT = 'CUT';
const BAR = '#'.repeat(20);
const bytes = Buffer.from('žluťoučký\n');
const states = Array.from({ length: 20_000 }, (_, at) => `\r${at}/20000 ${BAR}`).join('');

it.each<[string, { raw?: boolean; prefixes?: boolean }, ...Step[]]>([
  ['come each when it is complete', {}, [], '\n', ['\n'], 'one\ntw', ['one\n'], 'o\r\n\nthree', ['two\n', '\n']],
  [
    'show what a terminal shows after backspaces',
    {},
    'done 10%\b\b\b20%\b\b\b30%\n|\b/\b-\b\\\b|\b ok\nB\bBo\bol\bld\n\u001b[32m1\u001b[0m\b2\n',
    ['done 30%\n', ' ok\n', 'Bold\n', '2\n'],
  ],
  ['are whole characters, wherever they are cut', {}, bytes.subarray(0, 1), [], bytes.subarray(1), [String(bytes)]],
  [
    'show a line without an end after a second, and again when it has changed',
    {},
    ...['Continue?', [], 1_000, ['Continue?\n'], 5_000, [], ' yes', 500, ['Continue? yes\n'], '\nnext\n', ['next\n']],
  ],
  [
    'have that second from their first character on',
    {},
    ...[5_000, [], 'half', [], 999, [], 1, ['half\n'], ' a line\nnext', 500, ['half a line\n'], 999, [], 1, ['next\n']],
  ],
  ['show a line again whose beginning was equal', {}, 'same', 0, [], 1_000, ['same\n'], '\nsame\n', ['same\n']],
  [
    'pass on what is raw once',
    { raw: true },
    ...['half', [], 1_000, ['half\n'], 1_000, [], ' a line\n', [' a line\n']],
  ],
  [
    'are exact bytes without a name',
    { raw: true, prefixes: false },
    ...['half', ['half'], '\nnext\r\n', ['\nnext\r\n'], '\0last', ['\0last']],
  ],
  [
    'show of a progress bar the last state, once a second',
    {},
    ...['\r10 %\r20 %', [], '\r30 %', 1_000, ['30 %\n'], '\r40 %\r50 %\r', 999, [], 1, ['50 %\n']],
    ...['\r100 %\n', ['100 %\n'], `${states}\r\r\n`, [`19999/20000 ${BAR}\n`]],
  ],
  [
    'begin anew with a new generation',
    {},
    ...['the old content\nunfini', ['the old content\n'], CUT, 'new\n'],
    ['unfini\n', '--- the remote file was truncated or rewritten; the new content follows ---\n', 'new\n'],
  ],
  ['do not fill the memory', {}, 'x'.repeat(100_000), [`${'x'.repeat(65_536)}\n`], '\n', [`${'x'.repeat(34_464)}\n`]],
])('the lines of a mirror %s', (_, options, ...steps) => {
  const { file, look } = tailOf(options);
  let passedMs = 0;
  for (const step of steps) {
    if (step === CUT) fs.truncateSync(file);
    else if (typeof step === 'number') passedMs = step;
    else if (!Array.isArray(step)) fs.appendFileSync(file, step as string | Buffer);
    else {
      expect(look(passedMs)).toEqual(step);
      passedMs = 0;
    }
  }
});

it('the lines of a mirror show the last state of several lines that a program draws again and again', () => {
  const { file, look } = tailOf({});
  const drawn = Array.from({ length: 400 }, (_, at) => {
    const up = at === 0 ? '' : '\u001b[2A';
    return `${up}\r\u001b[2Kfirst ${at}\n\u001b[2Ksecond ${at}\n`;
  });
  // As docker does it: one line in the middle, and back.
  const text = `before\n${drawn.join('')}after\na\nb\nc\n\u001b[2A\rB\u001b[2B\rd\n`;
  fs.writeFileSync(file, text);
  expect(look(0)).toEqual(
    ['before', 'first 399', 'second 399', 'after', 'a', 'B', 'c', 'd'].map((line) => `${line}\n`),
  );
  expect(startOfLastLines(file, 7), 'the last seven begin before all states').toBe('before\n'.length);
  expect(startOfLastLines(file, 4)).toBe(text.indexOf('a\nb'));
});

it('the lines of a mirror come once, also of megabytes, those of a new one within a second, and the last at the end', () => {
  const { directory, file, look, end } = tailOf({});
  const other = path.join(directory, JOB, 'live', '9002', 'stdout.log');
  fs.mkdirSync(path.dirname(other), { recursive: true });
  fs.writeFileSync(other, 'of another task\n');
  expect([look(999), look(1)]).toEqual([[], ['9002 stdout | of another task\n']]);
  fs.appendFileSync(file, `${'0123456789\n'.repeat(200_000)}last`);
  const lines = end();
  expect([lines.length, lines.at(-1)]).toEqual([200_001, 'last\n']);
  expect(openFilesIn(directory)).toBe(0);
});

it('the names of mirrors that are made one by one have the width of those that are made together, also when one is mended', () => {
  const directory = temporaryDirectory();
  const live = path.join(directory, JOB, 'live', '9001');
  fs.mkdirSync(live, { recursive: true });
  const lines: string[] = [];
  const mirrors = new TailedMirrors((line) => lines.push(stripVTControlCharacters(line)), {
    mirror: { directory, keepGenerations: 5 },
    jobIds: [JOB],
  });
  for (const file of ['stdout', 'progress']) {
    fs.writeFileSync(path.join(live, `${file}.log`), 'a line\n');
    mirrors.end();
  }
  expect(lines).toEqual(['9001 stdout   | a line\n', '9001 progress | a line\n']);
  // Where generations are kept, what becomes shorter is being repaired.
  fs.truncateSync(path.join(live, 'stdout.log'), 1);
  mirrors.end();
  fs.appendFileSync(path.join(live, 'stdout.log'), ' mended line\n');
  mirrors.end();
  expect(lines.slice(2)).toEqual(['9001 stdout   |  mended line\n']);
});
