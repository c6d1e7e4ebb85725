import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MirrorReader, startOfLastLines } from '../../../src/cli/show/line-tail.ts';
import { numRuns } from '../../support/property-runs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const mirrorFile = () => path.join(temporaryDirectory(), 'stdout.log');

/** What one look brings, as text; `|` where a generation begins. */
function lookOf(reader: MirrorReader, maxBytes?: number): string {
  let text = '';
  reader.read((piece) => (text += piece === 'generation' ? '|' : piece.toString('latin1')), maxBytes);
  return text;
}

/** Keeps what is there as `.1`, as the agent does before it cuts the mirror. */
function keep(file: string): void {
  fs.copyFileSync(file, `${file}.keeping`);
  for (const number of [2, 1])
    if (fs.existsSync(`${file}.${number}`)) fs.renameSync(`${file}.${number}`, `${file}.${number + 1}`);
  fs.renameSync(`${file}.keeping`, `${file}.1`);
}

/** What a program does with the mirror, by the first word. */
const STEPS: Readonly<Record<string, (file: string, rest: string) => void>> = {
  add: (file, rest) => fs.appendFileSync(file, rest),
  keep,
  cut: (file, rest) => fs.truncateSync(file, Number(rest)),
  rotate(file) {
    keep(file);
    fs.truncateSync(file);
  },
  // Between the copy and the next bytes, the copy is flushed.
  flush(file) {
    const later = fs.statSync(`${file}.1`).mtimeMs / 1_000 + 1;
    fs.utimesSync(file, later, later);
  },
};

it.each<[string, { keeps?: boolean; at?: number }, ...string[]]>([
  ['brings what is new', {}, 'open', 'see', 'add one', 'see one', 'add ,two', 'see ,two'],
  ['begins where it is asked to', { at: 4 }, 'add one two', 'open', 'see two'],
  [
    'reads the rest of a generation before the next one, also when that is longer already',
    { keeps: true },
    ...['add old,', 'open', 'see old,', 'add rest', 'rotate', 'add new and longer', 'see rest|new and longer'],
    ...['rotate', 'see |', 'add third', 'see third'],
  ],
  [
    'reads each generation that came and went between two reads',
    { keeps: true },
    ...['add old,', 'rotate', 'add one,', 'open', 'see one,', 'add rest'],
    ...['rotate', 'add two', 'rotate', 'add three and more', 'see rest|two|three and more'],
  ],
  [
    'waits between the keeping and the cutting',
    { keeps: true },
    ...['add old', 'open', 'see old', 'keep', 'see', 'cut 0', 'add new', 'see |new'],
  ],
  ...['step 11', 'step 10'].map((next): [string, { keeps: boolean }, ...string[]] => [
    `sees a generation that is as long as the one before, or equals it: ${next}`,
    { keeps: true },
    ...['add step 10', 'open', 'see step 10', 'rotate', `add ${next}`, 'flush', `see |${next}`, 'see'],
  ]),
  ['takes a shorter mirror for a new generation', {}, 'add one two', 'open', 'see one two', 'cut 4', 'see |one '],
  [
    'does not where generations are kept',
    { keeps: true },
    ...['add one two', 'open', 'see one two', 'cut 4', 'see', 'add more', 'see more'],
  ],
])('the reader of a mirror %s', (_, options, ...steps) => {
  const file = mirrorFile();
  let reader: MirrorReader | undefined;
  for (const step of steps) {
    const [, word = '', rest = ''] = /^(\w+) ?(.*)$/.exec(step) ?? [];
    if (word === 'open') reader = new MirrorReader(file, options);
    else if (word === 'see') expect(reader && lookOf(reader), step).toBe(rest);
    else if (STEPS[word] === undefined) throw new Error(`there is no such step: ${step}`);
    else STEPS[word](file, rest);
  }
});

it('the reader of a mirror takes no more than is asked for at a time', () => {
  const file = mirrorFile();
  fs.writeFileSync(file, 'x'.repeat(200_000));
  const reader = new MirrorReader(file);
  const first = lookOf(reader, 100_000).length;
  expect(first).toBeGreaterThanOrEqual(100_000);
  expect(first).toBeLessThan(200_000);
  expect(first + lookOf(reader).length).toBe(200_000);
});

describe('what stands in the place of a mirror', () => {
  it.each([
    ['a link', (file: string) => fs.symlinkSync('/etc/passwd', file)],
    ['a pipe', (file: string) => void execFileSync('mkfifo', [file])],
  ])('is neither followed nor waited for: %s', (_, put) => {
    const file = mirrorFile();
    put(file);
    for (const look of [() => lookOf(new MirrorReader(file)), () => startOfLastLines(file, 3)])
      expect(look).toThrow(`${file} is not a file, and is not followed`);
  });
});

it('the start of the last lines is what tail -n shows, whatever the lines are', () => {
  const file = mirrorFile();
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
