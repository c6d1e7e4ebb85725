/**
 * Invariant: a listed file is downloaded once at most, and what is proven of each mirror is what holding it by itself
 * against each listed file that it may be would prove.
 */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LiveProof, proveMirrors } from '../../../src/agent/pass/mirror-proofs.ts';
import { JobtailError } from '../../../src/errors.ts';
import type { TaskId } from '../../../src/job.ts';
import type { LiveFileRow } from '../../../src/store/rows.ts';
import { NEW_ROW } from '../../support/live-place.ts';
import { numRuns } from '../../support/property-runs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { openFilesIn } from '../../support/wire-files.ts';
import { FilesRemote, JOB } from '../results/place.ts';

interface Mirror {
  readonly content: string;
  readonly relativePath: string;
  readonly listedName: string | null;
  /** Bytes that were committed and are gone. */
  readonly gone: number;
  /** A name that is known to be another live file. */
  readonly not: string | null;
}

class Proofs {
  readonly directory = temporaryDirectory();
  readonly remote = new FilesRemote();
  readonly rows: LiveFileRow[] = [];
  readonly abort = new AbortController();
  readonly #not = new Map<LiveFileRow, string | null>();

  /** Where the mirror stands. */
  add({ content, relativePath, listedName, gone, not }: Mirror): string {
    const taskId = `${9_001 + this.rows.length}` as TaskId;
    const file = path.join(this.directory, JOB, 'live', taskId, 'stdout.log');
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
    const row = { ...NEW_ROW, taskId, jobId: JOB, position: content.length + gone, relativePath, listedName };
    this.rows.push(row);
    this.#not.set(row, not);
    return file;
  }

  /** Adds a mirror of which only the bytes tell which listed file it is. */
  unknown(content: string): string {
    return this.add({ content, relativePath: '/stdout.txt', listedName: null, gone: 0, not: null });
  }

  /** Mirrors that are open now. */
  get open(): number {
    return openFilesIn(this.directory);
  }

  prove(): Promise<(LiveProof | JobtailError)[]> {
    const { remote } = this;
    return proveMirrors(this.rows, {
      ...{ remote, jobId: JOB, signal: this.abort.signal, mirrorDirectory: this.directory },
      listed: [...remote.files.keys()],
      mayBe: (name, row) => name !== this.#not.get(row),
    });
  }
}

const equal = (bytes: number, listedName: string | null): LiveProof => ({
  proof: { outcome: 'equal', bytes, remoteBytes: bytes },
  listedName,
});
const differentAt = (at: number) => ({ proof: { outcome: 'different', at } });

describe('mirrors and listed files', () => {
  const NAMES = ['/1/stdout.txt', '/1/a/stdout.txt', '/2/stdout.txt', '/2/a/stdout.txt', '/2/other.txt'];
  const content = fc
    .tuple(fc.constantFrom('', 'one\n', 'b'.repeat(1_500)), fc.constantFrom('', 'x', 'xy', 'z'))
    .map((parts) => parts.join(''));
  const mirror: fc.Arbitrary<Mirror> = fc.record({
    content,
    relativePath: fc.constantFrom('/stdout.txt', 'a/stdout.txt', '/gone.txt'),
    listedName: fc.option(fc.constantFrom(...NAMES, '/3/stdout.txt'), { freq: 3 }),
    gone: fc.constantFrom(0, 0, 0, 0, 0, 7),
    not: fc.option(fc.constantFrom(...NAMES)),
  });
  const listed = fc.oneof(
    { weight: 6, arbitrary: content },
    {
      weight: 1,
      arbitrary: fc.constantFrom(new JobtailError('fault', 'refused'), new JobtailError('malformed', 'torn')),
    },
  );
  const given = fc.record({
    mirrors: fc.array(mirror, { minLength: 1, maxLength: 6 }),
    files: fc.array(fc.tuple(fc.constantFrom(...NAMES), listed), { maxLength: 6 }),
    pieceBytes: fc.constantFrom(3, 700, 5_000),
  });

  it('are proven as each by itself, with one download of each file', async () => {
    await fc.assert(
      fc.asyncProperty(given, async ({ mirrors, files, pieceBytes }) => {
        const proofs = new Proofs();
        const { remote } = proofs;
        remote.pieceBytes = pieceBytes;
        for (const [name, file] of files) {
          if (file instanceof JobtailError) remote.files.set(name, file);
          else remote.set(name, file);
        }
        for (const one of mirrors) proofs.add(one);
        const found = await proofs.prove();
        expect(found.map(toldOf)).toEqual(mirrors.map((one) => toldOf(byItself(one, remote.files))));
        expect(new Set(remote.downloads).size).toBe(remote.downloads.length);
        expect(remote.downloads).not.toContain('/2/other.txt');
      }),
      numRuns(300),
    );
  });

  /** How far a listed file was read does not matter once it differs. */
  function toldOf(found: LiveProof | JobtailError) {
    if (found instanceof JobtailError) return found.code;
    const { proof, listedName } = found;
    return proof.outcome === 'different' ? { listedName, ...proof, remoteBytes: 0 } : { listedName, ...proof };
  }

  function byItself(one: Mirror, files: FilesRemote['files']): LiveProof | JobtailError {
    const { content: here, relativePath, listedName: known, gone, not } = one;
    const bytes = here.length;
    const unproven = (reason: string): LiveProof => ({
      proof: { outcome: 'unproven', bytes, reason },
      listedName: null,
    });
    if (gone > 0) return unproven(`${gone} of its bytes are gone: ${bytes + gone} were mirrored`);
    if (bytes === 0) return equal(0, null);
    const end = relativePath.replace(/^\/?/, '/');
    const fitting = [...files.keys()].filter((name) => name.endsWith(end) && name !== not);
    const names = known !== null && fitting.includes(known) ? [known] : fitting;
    const found = names.map((listedName): LiveProof | JobtailError => {
      const there = files.get(listedName) ?? Buffer.alloc(0);
      if (there instanceof JobtailError && there.code !== 'fault') return there;
      if (there instanceof JobtailError) return { ...unproven('refused'), listedName };
      const remoteBytes = there.length;
      const at = [...here].findIndex((letter, index) => there.toString()[index] !== letter);
      if (at < 0) return { proof: { outcome: 'equal', bytes, remoteBytes }, listedName };
      return { proof: { outcome: 'different', bytes, remoteBytes, at }, listedName };
    });
    const compared = found.flatMap((each) => (each instanceof JobtailError ? [] : [each]));
    const equals = compared.filter(({ proof }) => proof.outcome === 'equal');
    const whole = equals.find(({ proof }) => proof.outcome === 'equal' && proof.remoteBytes === bytes);
    const failure = found.find((each) => each instanceof JobtailError);
    if (failure !== undefined) return whole === undefined ? failure : { ...whole, listedName: null };
    const [first] = equals.length > 0 ? equals : compared;
    if (first === undefined) return unproven('the service lists no file that fits');
    return equals.length > 1 ? { ...(whole ?? first), listedName: null } : first;
  }
});

it('downloads that fail between others that do not end no pass', async () => {
  const proofs = new Proofs();
  for (let task = 0; task < 9; task++) {
    const [content, relativePath] = [`the text of ${task}\n`, `/${task}/stdout.txt`];
    proofs.add({ content, relativePath, listedName: relativePath, gone: 0, not: null });
    if (task % 3 === 2) proofs.remote.set(relativePath, content);
    else proofs.remote.files.set(relativePath, new JobtailError('timeout', 'no response'));
  }
  const found = await proofs.prove();
  expect(found.map((one) => (one instanceof JobtailError ? one.code : one.proof.outcome))).toEqual(
    Array(3).fill(['timeout', 'timeout', 'equal']).flat(),
  );
});

it('tasks that wrote the same need two downloads, however many they are', async () => {
  const proofs = new Proofs();
  for (let task = 0; task < 20; task++) {
    proofs.unknown('the same\n');
    proofs.remote.set(`/${task}/stdout.txt`, 'the same\n');
  }
  expect(await proofs.prove()).toEqual(Array(20).fill(equal(9, null)));
  expect(proofs.remote.downloads).toEqual(['/0/stdout.txt', '/1/stdout.txt']);
});

it('hundreds of mirrors that begin alike are not all open at a time', async () => {
  const proofs = new Proofs();
  const { remote } = proofs;
  const banner = 'x'.repeat(3_500);
  for (let task = 100; task < 500; task++) proofs.unknown(`${banner}${task}\n`);
  for (const task of [105, 499]) remote.set(`/${task}/stdout.txt`, `${banner}${task}\n`);
  let most = 0;
  remote.onPiece = () => {
    most = Math.max(most, proofs.open);
  };
  const found = await proofs.prove();
  expect(most).toBeGreaterThan(100);
  expect(most).toBeLessThan(300);
  expect(proofs.open).toBe(0);
  expect(found[5]).toEqual(equal(3_504, '/105/stdout.txt'));
  expect(found[399]).toEqual(equal(3_504, '/499/stdout.txt'));
  expect(found[6]).toMatchObject(differentAt(3_502));
  expect(found[398]).toMatchObject(differentAt(3_500));
  expect(remote.downloads).toHaveLength(2);
});

it('a mirror that is replaced between two pieces, while it is not open, proves nothing', async () => {
  const proofs = new Proofs();
  const content = 'x'.repeat(3_000);
  const files = Array.from({ length: 300 }, () => proofs.unknown(content));
  const last = files.at(-1) ?? '';
  proofs.remote.set('/1/stdout.txt', content);
  proofs.remote.onPiece = () => {
    fs.writeFileSync(`${last}.new`, content);
    fs.renameSync(`${last}.new`, last);
  };
  const found = await proofs.prove();
  expect(found.at(-1)).toMatchObject({
    proof: { outcome: 'unproven', reason: `${last} was replaced while it was compared` },
  });
  expect(found.slice(0, -1)).toEqual(Array(299).fill(equal(3_000, '/1/stdout.txt')));
});

it.each<[string, (file: string) => void, unknown]>([
  ['cut before its turn', (file) => fs.truncateSync(file, 10), differentAt(10)],
  ['changed behind its beginning', (file) => fs.writeFileSync(file, `${'x'.repeat(2_000)}y`), differentAt(2_000)],
  [
    'made a link',
    (file) => toLink(file),
    { proof: { outcome: 'unproven', reason: expect.stringMatching('not a regular file') } },
  ],
  ['removed', (file) => fs.rmSync(file), { code: 'local-io' }],
])('a mirror that is %s, meanwhile, is not taken for what it was', async (_, change, outcome) => {
  const proofs = new Proofs();
  proofs.unknown('another\n');
  const known = { relativePath: '/stdout.txt', listedName: '/2/stdout.txt', gone: 0, not: null };
  const file = proofs.add({ ...known, content: 'x'.repeat(3_000) });
  proofs.remote.set('/1/stdout.txt', 'another\n');
  proofs.remote.set('/2/stdout.txt', 'x'.repeat(3_000));
  proofs.remote.onPiece = (name) => {
    if (name === '/1/stdout.txt') change(file);
  };
  expect(await proofs.prove()).toMatchObject([equal(8, '/1/stdout.txt'), outcome]);
});

function toLink(file: string): void {
  fs.renameSync(file, `${file}.there`);
  fs.symlinkSync(`${file}.there`, file);
}

it('a mirror that cannot be read keeps no other from being proven', async () => {
  const proofs = new Proofs();
  const file = proofs.unknown('one\n');
  proofs.unknown('two\n');
  fs.rmSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(path.dirname(file), 'a file in the place of a directory');
  proofs.remote.set('/1/stdout.txt', 'one\n');
  proofs.remote.set('/2/stdout.txt', 'two\n');
  const [first, second] = await proofs.prove();
  expect(first).toMatchObject({ code: 'local-io' });
  expect(second).toEqual(equal(4, '/2/stdout.txt'));
});

it.each([
  ['unreachable', 1],
  ['timeout', 3],
] as const)('a service that fails (%s) is not asked for every file', async (code, downloads) => {
  const proofs = new Proofs();
  for (let task = 0; task < 10; task++) {
    proofs.unknown(`task ${task}\n`);
    proofs.remote.files.set(`/${task}/stdout.txt`, new JobtailError(code, 'it fails'));
  }
  await expect(proofs.prove()).rejects.toMatchObject({ code });
  expect(proofs.remote.downloads).toHaveLength(downloads);
});

it('an abort ends it, and leaves no file open', async () => {
  const proofs = new Proofs();
  for (let task = 0; task < 3; task++) proofs.unknown(`${'x'.repeat(3_000)}${task}`);
  proofs.remote.set('/1/stdout.txt', `${'x'.repeat(3_000)}1`);
  proofs.remote.onPiece = () => {
    expect(proofs.open).toBe(3);
    proofs.abort.abort();
  };
  await expect(proofs.prove()).rejects.toMatchObject({ code: 'aborted' });
  expect(proofs.open).toBe(0);
});
