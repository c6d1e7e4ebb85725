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

/** Keeps what is there as `.1` and cuts the mirror in place, as the agent does; `between` runs before the cut. */
function rotate(file: string, between = () => {}): void {
  fs.copyFileSync(file, `${file}.keeping`);
  for (const number of [2, 1])
    if (fs.existsSync(`${file}.${number}`)) fs.renameSync(`${file}.${number}`, `${file}.${number + 1}`);
  fs.renameSync(`${file}.keeping`, `${file}.1`);
  between();
  fs.truncateSync(file);
}

describe('reading a mirror', () => {
  it('brings what is new, from where it is asked to begin', () => {
    const file = mirrorFile();
    const reader = new MirrorReader(file);
    expect(lookOf(reader)).toBe('');
    fs.writeFileSync(file, 'one');
    expect(lookOf(reader)).toBe('one');
    fs.appendFileSync(file, ' two');
    expect(lookOf(reader)).toBe(' two');
    expect(lookOf(new MirrorReader(file, { at: 4 }))).toBe('two');
  });

  it('takes no more than is asked for at a time', () => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'x'.repeat(200_000));
    const reader = new MirrorReader(file);
    const first = lookOf(reader, 100_000).length;
    expect(first).toBeGreaterThanOrEqual(100_000);
    expect(first).toBeLessThan(200_000);
    expect(first + lookOf(reader).length).toBe(200_000);
  });

  it('reads the rest of a generation before the next one, also when that is longer already', () => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'old,');
    const reader = new MirrorReader(file, { keeps: true });
    expect(lookOf(reader)).toBe('old,');
    fs.appendFileSync(file, 'rest');
    rotate(file);
    fs.appendFileSync(file, 'new and longer than before');
    expect(lookOf(reader)).toBe('rest|new and longer than before');
    rotate(file);
    expect(lookOf(reader)).toBe('|');
    fs.appendFileSync(file, 'third');
    expect(lookOf(reader)).toBe('third');
  });

  it('reads each generation that came and went between two reads', () => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'old,');
    rotate(file);
    fs.appendFileSync(file, 'one,');
    const reader = new MirrorReader(file, { keeps: true });
    expect(lookOf(reader)).toBe('one,');
    fs.appendFileSync(file, 'rest');
    for (const next of ['two', 'three and more']) {
      rotate(file);
      fs.appendFileSync(file, next);
    }
    expect(lookOf(reader)).toBe('rest|two|three and more');
  });

  it('waits between the keeping and the cutting', () => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'old');
    const reader = new MirrorReader(file, { keeps: true });
    lookOf(reader);
    rotate(file, () => expect(lookOf(reader)).toBe(''));
    fs.appendFileSync(file, 'new');
    expect(lookOf(reader)).toBe('|new');
  });

  it.each(['step 11', 'step 10'])('sees a generation that is as long as the one before, or equals it: %s', (next) => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'step 10');
    const reader = new MirrorReader(file, { keeps: true });
    lookOf(reader);
    rotate(file);
    fs.appendFileSync(file, next);
    // Between the copy and the next bytes, the copy is flushed.
    const later = fs.statSync(`${file}.1`).mtimeMs / 1_000 + 1;
    fs.utimesSync(file, later, later);
    expect(lookOf(reader)).toBe(`|${next}`);
    expect(lookOf(reader)).toBe('');
  });

  it('takes a shorter mirror for a new generation only where none is kept', () => {
    const file = mirrorFile();
    fs.writeFileSync(file, 'one two');
    const keeping = new MirrorReader(file, { keeps: true });
    const plain = new MirrorReader(file);
    for (const reader of [keeping, plain]) lookOf(reader);
    fs.truncateSync(file, 4);
    expect(lookOf(keeping)).toBe('');
    expect(lookOf(plain)).toBe('|one ');
    fs.appendFileSync(file, 'more');
    expect(lookOf(keeping)).toBe('more');
  });
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
