import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ignoresCase, judgeOf } from '../../../../src/agent/results/listing.ts';
import { partialName, resultPath } from '../../../../src/safe-names.ts';
import { fileCalls } from '../../../../src/system/files.ts';
import { anyCharacter, numRuns } from '../../../support/property-runs.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { JOB, ResultsPlace } from '../place.ts';

const ALL = { include: ['**'], exclude: [] };
const LONG = 'x'.repeat(256);

/** Names that a server has no business with, and what is said of them. */
const HOSTILE: [name: string, reason: string][] = [
  ['', 'it is empty'],
  ['/', 'it is empty'],
  ['..', 'it has the part ..'],
  ['../x', 'it has the part ..'],
  ['/11/..', 'it has the part ..'],
  ['/11/./x', 'it has the part .'],
  ['/11/', 'it names a directory'],
  ['\\\\server\\share\\x', 'it has a backslash'],
  ['/11/a\0', 'it has a control character'],
  ['/11/\u001B[31mred', 'it has a control character'],
  ['/11/a\u007F', 'it has a control character'],
  ['/11/a\u009B31m', 'it has a control character'],
  ['/11/\uD800', 'it cannot be written as UTF-8'],
  ['/11/a\uFFFE', 'it has a character that XML cannot contain'],
  ['/11/\uFFFF', 'it has a character that XML cannot contain'],
  [LONG, 'a part of it is longer than 255 bytes'],
  [`/11/${'ü'.repeat(128)}`, 'a part of it is longer than 255 bytes'],
  [`/${'a/'.repeat(100)}x`, 'it is too long'],
  [`/${'abcdefghij'.repeat(20)}/`.repeat(15).concat('x'), 'it is too long'],
  [`/11/${partialName('0123456789abcdef')}`, 'it looks like a temporary file of the agent'],
  [`/11/${partialName('0123456789abcdef')}/x`, 'it looks like a temporary file of the agent'],
];

/** Names that are odd, and fine: with the path each is given. */
const ODD: [name: string, parts: string[]][] = [
  ['/etc/passwd', ['etc', 'passwd']],
  ['/11/ a ', ['11', ' a ']],
  ['/11/a,b;c', ['11', 'a,b;c']],
  ['/11/a\nb', ['11', 'a\nb']],
  ['/11/..a', ['11', '..a']],
  ['/11/-rf', ['11', '-rf']],
  ['-oProxyCommand=x', ['-oProxyCommand=x']],
  ['/11/$(reboot)', ['11', '$(reboot)']],
  ["/11/it's", ['11', "it's"]],
  ['/11/*?[a]{b}', ['11', '*?[a]{b}']],
  ['/11/%2e%2e/x', ['11', '%2e%2e', 'x']],
  ['/11/ünïcödé', ['11', 'ünïcödé']],
  ['/11/日本語', ['11', '日本語']],
  ['/11/Data', ['11', 'Data']],
  ['/11/\u202Egnp.exe', ['11', '\u202Egnp.exe']],
  ['/11/\uFEFFbom', ['11', '\uFEFFbom']],
  [`/11/${'x'.repeat(255)}`, ['11', 'x'.repeat(255)]],
];

describe('hostile names', () => {
  it.each(HOSTILE)('%j is refused: %s', (name, reason) => {
    expect(resultPath(name)).toEqual({ refused: reason });
  });

  it('are reported once, together and readable, while the good ones come', async () => {
    const place = new ResultsPlace();
    // No XML can carry half a character.
    const hostile = HOSTILE.map(([name]) => name).filter((name) => name.isWellFormed());
    place.remote.listedToo = hostile;
    for (const [name] of ODD) place.remote.set(name, `content of ${name}`);
    expect(await place.sync()).toMatchObject({ fetched: ODD.length, failed: 0, refused: hostile.length });
    expect(place.reported).toEqual([expect.stringMatching(/^[^\p{Cc}\p{Cf}\p{Cs}]*$/u)]);
    expect(place.reported[0]).toMatch(new RegExp(`^${hostile.length} refused: `));
    // Long ones are cut.
    expect(place.reported[0]).not.toMatch(/x{201}/);
    for (const [, reason] of HOSTILE.filter(([name]) => name.isWellFormed()))
      expect(place.reported[0]).toContain(reason);
    await place.sync(true);
    place.restarted();
    await place.sync(true);
    expect(place.reported).toHaveLength(1);
    expect(place.store.results.counts(JOB)).toMatchObject({ refused: hostile.length, failed: hostile.length });
    expect(place.tree()).toEqual(ODD.map(([, parts]) => parts.join('/')).sort());
    for (const [name, parts] of ODD) expect(place.read(...parts)).toBe(`content of ${name}`);
    // Nothing anywhere else.
    expect(fs.readdirSync(path.join(place.mirror, JOB))).toEqual(['results']);
    expect(fs.readdirSync(place.mirror)).toEqual([JOB]);
  });

  it('are the only ones: whatever is accepted stays below its directory', () => {
    const piece = fc.constantFrom('..', '.', '/', '//', 'a', '\\', '\0', ' ', 'ü', '\n', '~', '-', '%2e', '\uD800');
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, fc.string({ unit: anyCharacter }))), (pieces) => {
        const found = resultPath(pieces.join(''));
        if ('refused' in found) return;
        const target = path.join('/root/results', ...found.parts);
        expect(target.startsWith('/root/results/')).toBe(true);
        expect(path.relative('/root/results', target).split('/')).toEqual(found.parts);
      }),
      numRuns(2_000),
    );
  });
});

describe('names in each other’s way', () => {
  const kinds = (names: readonly string[], foldsCase = false) => {
    const { verdictOn } = judgeOf(ALL, foldsCase);
    return names.map((name) => verdictOn(name).kind);
  };
  it.each([
    ['the same path, written in two ways', ['/11/a', '11//a']],
    ['a difference of normalisation only', ['/11/caf\u00E9', '/11/cafe\u0301']],
    ['a file where a directory must be', ['/11/a', '/11/a/b']],
    ['a directory where a file must be', ['/11/a/b', '/11/a']],
    ['a directory further up', ['/11/a/b/c/d', '/11/a']],
    ['normalisation of a directory', ['/11/caf\u00E9', '/11/cafe\u0301/x']],
  ])('%s: the first one has it', (_, names) => {
    expect(kinds(names)).toEqual(['fetch', 'refused']);
  });

  it('differ by upper and lower case: two files, except where the file system makes them one', async () => {
    const names = ['/11/Data', '/11/data', '/11/DATA/x', '/11/\u00C4', '/11/a\u0308'];
    expect(kinds(names)).toEqual(['fetch', 'fetch', 'fetch', 'fetch', 'fetch']);
    expect(kinds(names, true)).toEqual(['fetch', 'refused', 'refused', 'fetch', 'refused']);
    for (const onNetwork of [false, true])
      expect(await ignoresCase(fileCalls(onNetwork), temporaryDirectory())).toBe(false);
  });
});

it.each([
  ['a link to a directory', 'a', 'OUTSIDE'],
  ['a link that leads nowhere', 'a', '/nowhere'],
  ['a file where the directory must be', 'a', 'file'],
  ['a link in the place of the file', 'a/file', 'OUTSIDE/file'],
  ['a link in the place of the file, that ends as those of the agent do', 'a/file', 'OUTSIDE/../live/9001/stdout.log'],
  ['a directory in the place of the file', 'a/file/x', 'file'],
])('%s is neither followed nor replaced', async (_, at, to) => {
  const place = new ResultsPlace();
  const outside = path.join(place.directory, 'outside');
  fs.mkdirSync(outside);
  fs.writeFileSync(path.join(outside, 'file'), 'untouched');
  const planted = place.path('11', at);
  fs.mkdirSync(path.dirname(planted), { recursive: true });
  if (to === 'file') fs.writeFileSync(planted, 'x');
  else fs.symlinkSync(to.replace('OUTSIDE', outside), planted);
  place.remote.set('/11/a/file', 'from the server');
  place.remote.set('/11/good', 'good');
  expect(await place.sync()).toMatchObject({ fetched: 1, failed: 1 });
  expect(place.read('11', 'good')).toBe('good');
  expect(fs.readdirSync(outside)).toEqual(['file']);
  expect(fs.readFileSync(path.join(outside, 'file'), 'utf8')).toBe('untouched');
  const reason = /(is not a (file|directory)|is a link).*\(move .* out of the way\)$/;
  expect(place.row('/11/a/file')).toMatchObject({ state: 'failed', reason: expect.stringMatching(reason) });
});
