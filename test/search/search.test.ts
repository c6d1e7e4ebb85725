/** The search against GNU grep, with chunks so small that every line is cut somewhere. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { GuardedThread } from '../../src/search/guarded-thread.ts';
import type { FoundLine, Wanted } from '../../src/search/scan.ts';
import { type SearchOptions, search } from '../../src/search/search.ts';
import { expectCases, stepOf } from '../support/errors.ts';
import { numRuns } from '../support/property-runs.ts';
import { directoryOfFile } from '../support/temp-directory.ts';

const directory = directoryOfFile();

function written(name: string, content: string | Buffer) {
  const file = path.join(directory, name);
  fs.writeFileSync(file, content);
  return { path: file, size: fs.statSync(file).size };
}

interface Results {
  readonly lines: readonly FoundLine[];
  readonly counts: readonly number[];
  readonly errors: readonly string[];
}

async function resultsOf(options: SearchOptions<{ readonly path: string; readonly size: number }>): Promise<Results> {
  const results = { lines: [] as FoundLine[], counts: [] as number[], errors: [] as string[] };
  const order: string[] = [];
  for await (const event of search(options)) {
    if (order.at(-1) !== event.file.path) order.push(event.file.path);
    if (event.kind === 'lines') results.lines.push(...event.lines);
    else {
      results.counts.push(event.count);
      if (event.error !== null) results.errors.push(event.error);
    }
  }
  expect(order).toEqual(options.files.map((file) => file.path));
  return results;
}

const LINES: Wanted = { what: 'lines', numbered: true };
const SMALL = { chunkBytes: 7, maxLineBytes: 1000 };

/** What grep -n prints, one character for each byte. */
function grepText(lines: readonly FoundLine[], hasContext: boolean): string {
  return lines
    .map(({ number, bytes, isSelected }, index) => {
      const mark = isSelected ? ':' : '-';
      const isGap = hasContext && index > 0 && lines[index - 1]?.number !== number - 1;
      return `${isGap ? '--\n' : ''}${number}${mark}${bytes}\n`;
    })
    .join('');
}

describe('against GNU grep', () => {
  const atom = fc.tuple(
    fc.constantFrom('a', 'b', 'A', 'k', 's', ' ', 'ab', 'abk', '.', '[ab]', '[^a]', '(ab)', '(a|b)', '\\.', '(k*|s)'),
    fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{0,1}'),
  );
  const branch = fc
    .tuple(fc.constantFrom('', '', '^'), fc.array(atom, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '', '$'))
    .map(([begin, atoms, end]) => `${begin}${atoms.map((parts) => parts.join('')).join('')}${end}`);
  const source = fc.array(branch, { minLength: 1, maxLength: 2 }).map((branches) => branches.join('|'));
  const content = (more: readonly string[]) =>
    fc
      .array(fc.constantFrom('a', 'b', 'A', 'k', 'S', 'ab', 'abk', '.', ' ', '\n', '\n', '\r', ...more), {
        maxLength: 80,
      })
      .map((parts) => Buffer.from(parts.join(''), 'latin1'));
  const options = fc.record({
    chunkBytes: fc.integer({ min: 1, max: 20 }),
    ignoreCase: fc.boolean(),
    invert: fc.boolean(),
    before: fc.integer({ min: 0, max: 3 }),
    after: fc.integer({ min: 0, max: 3 }),
  });
  // Each context of lines that are far apart, near, and at both ends.
  const examples = [0, 1, 2, 3].flatMap((before) =>
    [0, 1, 2, 3].map((after) => {
      const how = { chunkBytes: 5, ignoreCase: false, invert: false, before, after };
      const text = 'a\n1\n2\n3\n4\n5\n6\n7\na\n1\n2\na\na\n1\n2\n3\n4\n5\n6\na';
      return ['a', Buffer.from(text), how] as [string, Buffer<ArrayBuffer>, typeof how];
    }),
  );
  // Without U+212A: grep -i does not find this sign of Kelvin by the letter k, as the case folding of Unicode does.
  const utf8 = ['é', 'É', '√', 'ſ'].map((character) => Buffer.from(character).toString('latin1'));

  // In the locale C, each byte is a character, as each of these is that is not UTF-8.
  it.each([
    ['bytes that are not UTF-8', 'C', ['\u00ff']],
    ['UTF-8', 'C.UTF-8', utf8],
  ])('selects the same lines, numbers and context: %s', async (_, locale, more) => {
    await fc.assert(
      fc.asyncProperty(source, content(more), options, async (pattern, bytes, { chunkBytes, ...flags }) => {
        const file = written('any', bytes);
        const { ignoreCase, invert, before, after } = flags;
        const context = before + after > 0 ? ['-B', String(before), '-A', String(after)] : [];
        const choice = [...(ignoreCase ? ['-i'] : []), ...(invert ? ['-v'] : []), ...context];
        const env = { ...process.env, LC_ALL: locale };
        const grep = spawnSync('grep', ['-anE', ...choice, '--', pattern, file.path], { env, encoding: 'latin1' });
        const limits = { chunkBytes, maxLineBytes: 1000 };
        const base = { files: [file], pattern: { source: pattern, ignoreCase, invert }, limits, threads: 0 };
        const found = await resultsOf({ ...base, wanted: { ...LINES, before, after } });
        expect(grepText(found.lines, context.length > 0)).toBe(grep.stdout);
        const selected = found.lines.filter((line) => line.isSelected);
        const { counts, lines } = await resultsOf({ ...base, wanted: { what: 'count' } });
        expect([counts, lines]).toEqual([[selected.length], []]);
        const any = await resultsOf({ ...base, wanted: { what: 'any' } });
        expect(any.counts[0] === 0 ? 1 : 0).toBe(grep.status);
        const ends = await resultsOf({ ...base, wanted: { what: 'ends', numbered: true } });
        expect(ends.lines).toEqual(selected.length < 2 ? selected : [selected[0], selected.at(-1)]);
      }),
      { ...numRuns(600), examples: locale === 'C' ? examples : [] },
    );
  });
});

describe('one file', () => {
  const linesOf = async (content: string | Buffer, source: string, more: object = {}) => {
    const options = { files: [written('one', content)], pattern: { source, ...more }, wanted: LINES, threads: 0 };
    return (await resultsOf({ ...options, limits: SMALL })).lines.map(({ number, bytes }) => `${number}:${bytes}`);
  };

  it('has the lines that are written', async () => {
    await expectCases(path.join(import.meta.dirname, 'search.txt'), async (given) => {
      const all = stepOf(`find ${given}`, { find: (...of) => of }) as [string, string, object?, object?];
      const [content, source, how = {}, more = {}] = all;
      const options = { files: [written('one', Buffer.from(content, 'latin1'))], pattern: { source, ...how } };
      const wanted = { ...LINES, ...more };
      const { lines } = await resultsOf({ ...options, wanted, limits: SMALL, threads: 0 });
      return lines.map(({ number, bytes, isSelected }) => {
        const text = Buffer.from(bytes, 'latin1').toString().replaceAll('\u001b', 'ESC');
        const short = text.replaceAll(/(.)\1{9,}/g, (run, character) => `<${character}*${run.length}>`);
        return `${number}${isSelected ? ':' : '-'}${short}`;
      });
    });
  });

  it('loses no word where the pieces of a long line are cut', async () => {
    for (let at = 950; at < 1050; at++)
      expect(await linesOf(`${'x'.repeat(at)}needle${'x'.repeat(2000)}\nlast`, 'needle')).toHaveLength(1);
  });

  it('finds each of many texts, also a short one, and in any case', async () => {
    const words = Array.from({ length: 24 }, (_, index) => `word${String.fromCharCode(97 + index)}`);
    for (const all of [words, [...words, 'ab'], [...words, 'xyz']]) {
      const [text, source] = [all.join('\n other text \n'), all.join('|')];
      expect(await linesOf(`${text}\nnone\n${all.at(-1)}`, source)).toHaveLength(all.length + 1);
      expect(await linesOf(text.toUpperCase(), source, { ignoreCase: true })).toHaveLength(all.length);
    }
  });

  it('returns only so many lines of each file, and counts all', async () => {
    const files = ['many', 'few'].map((name, index) => written(name, `no\n${'yes\n'.repeat(index === 0 ? 1_000 : 2)}`));
    const wanted = { ...LINES, maxLines: 3 };
    const { lines, counts } = await resultsOf({ files, pattern: { source: 'yes' }, wanted, limits: SMALL, threads: 0 });
    expect(lines.map(({ number }) => number)).toEqual([2, 3, 4, 2, 3]);
    expect(counts).toEqual([1_000, 2]);
  });

  it('reports what cannot be read, and searches the other files', async () => {
    const link = path.join(directory, 'link');
    fs.symlinkSync(written('target', 'a\n').path, link);
    const missing = { path: path.join(directory, 'missing'), size: 0 };
    const pipe = path.join(directory, 'pipe');
    spawnSync('mkfifo', [pipe]);
    const others = [link, directory, pipe].map((each) => ({ path: each, size: 0 }));
    const files = [missing, ...others, written('there', 'a\n')];
    const { counts, errors } = await resultsOf({ files, pattern: { source: 'a' }, wanted: { what: 'count' } });
    expect(counts).toEqual([0, 0, 0, 0, 1]);
    expect(errors.map((error) => error.replaceAll(directory, 'DIR'))).toEqual([
      expect.stringMatching('no such file.*DIR/missing'),
      expect.stringMatching('too many (?:levels of )?symbolic links.*DIR/link'),
      'DIR is not a file',
      'DIR/pipe is not a file',
    ]);
  });
});

describe('in threads', () => {
  const many = () =>
    Array.from({ length: 300 }, (_, index) =>
      written(`many-${index}`, `first of ${index}\n${index % 7 === 0 ? 'needle\n'.repeat(index * 10) : ''}last`),
    );

  it('returns the same in the same order as in one thread, however much a thread is ahead', async () => {
    const files = many();
    for (const wanted of [LINES, { what: 'count' } as const, { ...LINES, before: 1, after: 1 }]) {
      const options = { files, pattern: { source: 'needle$' }, wanted };
      expect(await resultsOf({ ...options, threads: 3 })).toEqual(await resultsOf({ ...options, threads: 0 }));
    }
  });

  it('ends when its caller takes no more', async () => {
    for await (const event of search({ files: many(), pattern: { source: '.' }, wanted: LINES, threads: 2 })) {
      expect(event.kind).toBe('lines');
      break;
    }
  });

  it('ends by its signal within an expression that backtracks for ever', async () => {
    const controller = new AbortController();
    // Of such a size that each is searched by a thread of its own.
    const size = 5 * 1024 * 1024;
    const files = [
      { ...written('quick', 'b\n'), size },
      { ...written('slow', `${'a'.repeat(60)}b\n`), size },
    ];
    const pattern = { source: '^(?:b|(?:a|a)*$)' };
    const taken: string[] = [];
    const searching = (async () => {
      for await (const event of search({ files, pattern, wanted: LINES, threads: 2, signal: controller.signal })) {
        taken.push(path.basename(event.file.path));
        if (event.kind === 'end') controller.abort();
      }
    })();
    await expect(searching).rejects.toMatchObject({ name: 'AbortError' });
    expect(taken).toEqual(['quick', 'quick']);
    // Also that of one small file is in a thread.
    const alone = resultsOf({ files: files.slice(1), pattern, wanted: LINES, signal: AbortSignal.timeout(100) });
    await expect(alone).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('names the file in which an expression takes too long', async () => {
    const given = vi.spyOn(GuardedThread.prototype, 'ask').mockResolvedValue(undefined);
    const file = written('slow', 'b\n');
    await expect(resultsOf({ files: [file], pattern: { source: 'b+' }, wanted: LINES })).rejects.toMatchObject({
      ...{ code: 'timeout', message: expect.stringContaining(`${file.path}: the expression takes too long`) },
    });
    given.mockRestore();
  });
});
