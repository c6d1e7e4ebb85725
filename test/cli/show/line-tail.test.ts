import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MirrorReader, startOfLastLines, TailedMirrors } from '../../../src/cli/show/line-tail.ts';
import type { JobId } from '../../../src/job.ts';
import { numRuns } from '../../support/property-runs.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';

const JOB = '501' as JobId;

interface Tail {
  readonly raw?: boolean;
  readonly prefixes?: boolean;
  readonly keepGenerations?: number;
}

/** A tail of one file of the job from the first look on, with a clock that only the test moves. */
function tailOf({ keepGenerations = 0, ...options }: Tail) {
  const directory = temporaryDirectory();
  const file = path.join(directory, JOB, 'live', '9001', 'stdout.log');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '');
  const lines: string[] = [];
  let nowMs = 0;
  const begin = () => {
    const tail = new TailedMirrors(
      (line) => lines.push(stripVTControlCharacters(line).replace(/^9001 stdout \| /, '')),
      { mirror: { directory, keepGenerations }, jobIds: [JOB], file: ['stdout'] },
      { now: () => nowMs, ...options },
    );
    tail.add();
    return tail;
  };
  let tail: TailedMirrors | undefined;
  const look = (passedMs: number) => {
    tail ??= begin();
    nowMs += passedMs;
    tail.tick();
    return lines.splice(0);
  };
  const end = () => {
    tail?.end();
    return lines.splice(0);
  };
  return { directory, file, look, end };
}

/** Bytes that come, milliseconds that pass, what else happens to the file; the lines that are written then. */
type Step = string | Buffer | number | ((file: string) => void) | readonly string[];
const AGAIN = '--- the remote file was truncated or rewritten; the new content follows ---\n';
const cut = (bytes: number) => (file: string) => fs.truncateSync(file, bytes);
/** Keeps what is there as `.1`, as the agent does before it cuts the mirror. */
function keep(file: string): void {
  fs.copyFileSync(file, `${file}.keeping`);
  for (const number of [2, 1])
    if (fs.existsSync(`${file}.${number}`)) fs.renameSync(`${file}.${number}`, `${file}.${number + 1}`);
  fs.renameSync(`${file}.keeping`, `${file}.1`);
}
function rotate(file: string): void {
  keep(file);
  fs.truncateSync(file);
}
/** Between the copy and the next bytes, the copy is flushed. */
function flush(file: string): void {
  const later = fs.statSync(`${file}.1`).mtimeMs / 1_000 + 1;
  fs.utimesSync(file, later, later);
}
const BYTES = { raw: true, prefixes: false };
const KEPT = { ...BYTES, keepGenerations: 5 };
const BAR = '#'.repeat(20);
const bytes = Buffer.from('žluťoučký\n');
const states = Array.from({ length: 20_000 }, (_, at) => `\r${at}/20000 ${BAR}`).join('');

it.each<[string, Tail, ...Step[]]>([
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
  ['are exact bytes without a name', BYTES, ...['half', ['half'], '\nnext\r\n', ['\nnext\r\n'], '\0last', ['\0last']]],
  [
    'show of a progress bar the last state, once a second',
    {},
    ...['\r10 %\r20 %', [], '\r30 %', 1_000, ['30 %\n'], '\r40 %\r50 %\r', 999, [], 1, ['50 %\n']],
    ...['\r100 %\n', ['100 %\n'], `${states}\r\r\n`, [`19999/20000 ${BAR}\n`]],
  ],
  [
    'begin anew with a new generation',
    {},
    ...['the old content\nunfini', ['the old content\n'], cut(0), 'new\n'],
    ['unfini\n', AGAIN, 'new\n'],
  ],
  ['begin anew with what is left', BYTES, 'one two', ['one two'], cut(4), [AGAIN, 'one ']],
  ['do not begin anew where generations are kept', KEPT, 'one two', ['one two'], cut(4), [], 'more', ['more']],
  [
    'have the rest of a generation before the next one, also when that is longer already',
    KEPT,
    ...['old,', ['old,'], 'rest', rotate, 'new and longer', ['rest', AGAIN, 'new and longer']],
    ...[rotate, [AGAIN], 'third', ['third']],
  ],
  [
    'have each generation that came and went between two reads',
    KEPT,
    ...['old,', rotate, 'one,', ['one,'], 'rest', rotate, 'two', rotate, 'three and more'],
    ['rest', AGAIN, 'two', AGAIN, 'three and more'],
  ],
  ['wait between the keeping and the cutting', KEPT, 'old', ['old'], keep, [], cut(0), 'new', [AGAIN, 'new']],
  ...['step 11', 'step 10'].map((next): [string, Tail, ...Step[]] => [
    `have a generation that is as long as the one before, or equals it: ${next}`,
    KEPT,
    ...['step 10', ['step 10'], rotate, next, flush, [AGAIN, next], []],
  ]),
  ['do not fill the memory', {}, 'x'.repeat(100_000), [`${'x'.repeat(65_536)}\n`], '\n', [`${'x'.repeat(34_464)}\n`]],
])('the lines of a mirror %s', (_, options, ...steps) => {
  const { file, look } = tailOf(options);
  let passedMs = 0;
  for (const step of steps) {
    if (typeof step === 'function') step(file);
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
  look(0);
  const other = path.join(directory, JOB, 'live', '9002', 'stdout.log');
  fs.mkdirSync(path.dirname(other), { recursive: true });
  fs.writeFileSync(other, 'of another task\n');
  expect([look(999), look(1)]).toEqual([[], ['9002 stdout | of another task\n']]);
  fs.appendFileSync(file, `${'0123456789\n'.repeat(200_000)}last`);
  // At most a MiB at a time.
  const first = look(0).length;
  expect(Math.round(first / 1_000)).toBe(95);
  const lines = end();
  expect([first + lines.length, lines.at(-1)]).toEqual([200_001, 'last\n']);
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

it.each([
  ['a link', (file: string) => fs.symlinkSync('/etc/passwd', file)],
  ['a pipe', (file: string) => void execFileSync('mkfifo', [file])],
])('what stands in the place of a mirror is neither followed nor waited for: %s', (_, put) => {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  put(file);
  for (const look of [() => new MirrorReader(file).read(() => {}), () => startOfLastLines(file, 3)])
    expect(look).toThrow(`${file} is not a file, and is not followed`);
});

it('the start of the last lines is what tail -n shows, whatever the lines are', () => {
  const file = path.join(temporaryDirectory(), 'stdout.log');
  const lines = fc.array(fc.constantFrom('\n', 'a', 'bc', '\r', 'x'.repeat(40_000)), { maxLength: 12 });
  fc.assert(
    fc.property(lines, fc.nat(6), (pieces, count) => {
      const text = pieces.join('');
      fs.writeFileSync(file, text);
      const whole = text.split(/(?<=\n)/).filter((line) => line !== '');
      const expected = count === 0 ? '' : whole.slice(-count).join('');
      expect(text.slice(startOfLastLines(file, count))).toBe(expected);
    }),
    numRuns(300),
  );
});
