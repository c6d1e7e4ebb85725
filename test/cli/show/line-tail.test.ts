import fs from 'node:fs';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startOfLastLines, TailedMirrors } from '../../../src/cli/show/line-tail.ts';
import type { JobId } from '../../../src/job.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';

/** A tail of one file, with a clock that only the test moves. */
function tailOf(raw = false, prefixes = true) {
  const directory = temporaryDirectory();
  const file = path.join(directory, '501', 'live', '9001', 'stdout.log');
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, '');
  const lines: string[] = [];
  let nowMs = 0;
  const tail = new TailedMirrors(
    (line) => lines.push(stripVTControlCharacters(line).replace('9001 ', '')),
    { mirror: { directory, keepGenerations: 0 }, jobIds: ['501' as JobId], file: ['stdout'] },
    { now: () => nowMs, raw, prefixes },
  );
  tail.add();
  const look = (passedMs = 0) => {
    nowMs += passedMs;
    tail.tick();
    return lines.splice(0);
  };
  const end = () => {
    tail.end();
    return lines.splice(0);
  };
  return { directory, file, look, end, append: (text: string | Buffer) => fs.appendFileSync(file, text) };
}

describe('the lines of a mirror', () => {
  it('come with its name, each when it is complete', () => {
    const { look, append } = tailOf();
    expect(look()).toEqual([]);
    append('\n');
    expect(look()).toEqual(['stdout | \n']);
    append('one\ntw');
    expect(look()).toEqual(['stdout | one\n']);
    append('o\r\n\nthree');
    expect(look()).toEqual(['stdout | two\n', 'stdout | \n']);
  });

  it('show the last state of a progress bar, however long it has written without a newline', () => {
    const { end, append } = tailOf();
    const states = Array.from({ length: 20_000 }, (_, at) => `\r${at}/20000 ${'#'.repeat(20)}`);
    append(`${states.join('')}\r\r\nnext\r`);
    expect(end()).toEqual([`stdout | 19999/20000 ${'#'.repeat(20)}\n`, 'stdout | next\n']);
  });

  it('show what a terminal shows after backspaces', () => {
    const { look, append } = tailOf();
    append('done 10%\b\b\b20%\b\b\b30%\n|\b/\b-\b\\\b|\b ok\nB\bBo\bol\bld\n\u001b[32m1\u001b[0m\b2\n');
    expect(look()).toEqual(['done 30%', ' ok', 'Bold', '2'].map((line) => `stdout | ${line}\n`));
  });

  it('show the last state of several lines that a program draws again and again', () => {
    const { file, look, append } = tailOf();
    const states = Array.from({ length: 400 }, (_, at) => {
      const up = at === 0 ? '' : '\u001b[2A';
      return `${up}\r\u001b[2Kfirst ${at}\n\u001b[2Ksecond ${at}\n`;
    });
    append(`before\n${states.join('')}after\n`);
    // As docker does it: one line in the middle, and back.
    append('a\nb\nc\n\u001b[2A\rB\u001b[2B\rd\n');
    const shown = ['before', 'first 399', 'second 399', 'after', 'a', 'B', 'c', 'd'];
    expect(look()).toEqual(shown.map((line) => `stdout | ${line}\n`));
    const start = startOfLastLines(file, 7);
    expect(fs.readFileSync(file, 'utf8').slice(start, start + 3), 'the last seven begin before all states').toBe(
      '\r\u001b[',
    );
    expect(startOfLastLines(file, 4)).toBe(fs.readFileSync(file, 'utf8').indexOf('a\nb'));
  });

  it('are whole characters, wherever the bytes were cut', () => {
    const { look, append } = tailOf();
    const bytes = Buffer.from('žluťoučký\n');
    append(bytes.subarray(0, 1));
    expect(look()).toEqual([]);
    append(bytes.subarray(1));
    expect(look()).toEqual(['stdout | žluťoučký\n']);
  });

  it('show a line that does not end once it is a second old, and again when it has changed', () => {
    const { look, append } = tailOf();
    append('Continue?');
    expect(look()).toEqual([]);
    expect(look(1_000)).toEqual(['stdout | Continue?\n']);
    expect(look(5_000)).toEqual([]);
    append(' yes');
    expect(look(500)).toEqual(['stdout | Continue? yes\n']);
    append('\nnext\n');
    expect(look()).toEqual(['stdout | next\n']);
  });

  it('have a second from their first character on before they are shown without an end', () => {
    const { look, append } = tailOf();
    expect(look(5_000)).toEqual([]);
    append('half');
    expect([look(), look(999), look(1)]).toEqual([[], [], ['stdout | half\n']]);
    append(' a line\nnext');
    expect([look(500), look(999), look(1)]).toEqual([['stdout | half a line\n'], [], ['stdout | next\n']]);
  });

  it('show a line again that equals the one whose beginning was shown', () => {
    const { look, append } = tailOf();
    append('same');
    expect([look(), look(1_000)]).toEqual([[], ['stdout | same\n']]);
    append('\nsame\n');
    expect(look()).toEqual(['stdout | same\n']);
  });

  it('pass on what is raw once, whether its line has an end or not', () => {
    const { look, append } = tailOf(true);
    append('half');
    expect([look(), look(1_000), look(1_000)]).toEqual([[], ['stdout | half\n'], []]);
    append(' a line\n');
    expect(look()).toEqual(['stdout |  a line\n']);
  });

  it('are exact bytes without a name, also of a line that is long or has no end yet', () => {
    const { look, end, append } = tailOf(true, false);
    const parts = ['x'.repeat(200_000), 'half', '\nnext\r\n', '\0last'];
    const shown = parts.flatMap((part) => {
      append(part);
      return look(1_000);
    });
    expect([...shown, ...end()].join('')).toBe(parts.join(''));
  });

  it('come once, also of megabytes, and those of a new mirror within a second', () => {
    const { directory, look, end, append } = tailOf();
    const other = path.join(directory, '501', 'live', '9002', 'stdout.log');
    fs.mkdirSync(path.dirname(other), { recursive: true });
    fs.writeFileSync(other, 'of another task\n');
    expect([look(999), look(1)]).toEqual([[], ['9002 stdout | of another task\n']]);
    append('0123456789\n'.repeat(200_000));
    expect(end()).toHaveLength(200_000);
    expect(openFilesIn(directory)).toBe(0);
  });

  it('show of a progress bar the last state, once a second', () => {
    const { look, append } = tailOf();
    append('\r10 %\r20 %');
    expect(look()).toEqual([]);
    append('\r30 %');
    expect(look(1_000)).toEqual(['stdout | 30 %\n']);
    append('\r40 %\r50 %\r');
    expect(look(999)).toEqual([]);
    expect(look(1)).toEqual(['stdout | 50 %\n']);
    append('\r100 %\n');
    expect(look()).toEqual(['stdout | 100 %\n']);
  });

  it('are shown at the end without an end', () => {
    const { look, end, append } = tailOf();
    append('one\ntwo');
    expect(look()).toEqual(['stdout | one\n']);
    expect(end()).toEqual(['stdout | two\n']);
  });

  it('begin anew with a new generation', () => {
    const { file, look, append } = tailOf();
    append('the old content\nunfini');
    expect(look()).toHaveLength(1);
    fs.truncateSync(file);
    append('new\n');
    const rewritten = '--- the remote file was truncated or rewritten; the new content follows ---';
    expect(look()).toEqual(['stdout | unfini\n', `stdout | ${rewritten}\n`, 'stdout | new\n']);
  });

  it('do not fill the memory when a line never ends', () => {
    const { look, append } = tailOf();
    append('x'.repeat(200_000));
    const shown = look();
    expect(shown.length).toBeGreaterThan(1);
    append('\n');
    expect([...shown, ...look()].join('').replaceAll('stdout | ', '').replaceAll('\n', '')).toBe('x'.repeat(200_000));
  });
});

it('the names of mirrors that are made one by one have the width of those that are made together, also when one is mended', () => {
  const directory = temporaryDirectory();
  const jobId = '501' as JobId;
  const live = path.join(directory, jobId, 'live', '9001');
  fs.mkdirSync(live, { recursive: true });
  const lines: string[] = [];
  const mirrors = new TailedMirrors((line) => lines.push(stripVTControlCharacters(line)), {
    mirror: { directory, keepGenerations: 5 },
    jobIds: [jobId],
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
