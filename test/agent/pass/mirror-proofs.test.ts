/** What is proven of a mirror is what comparing it with each listed file that it may be would prove. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { absentFiles, type LiveProof, proveMirrors } from '../../../src/agent/pass/mirror-proofs.ts';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type TaskId } from '../../../src/job.ts';
import type { LiveFileRow } from '../../../src/store/rows.ts';
import { NEW_ROW } from '../../support/live-place.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { numRuns } from '../../support/property-runs.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';
import { FilesRemote, JOB } from '../results/place.ts';

interface Mirror {
  readonly content: string;
  readonly relativePath: string;
  readonly listedName: string | null;
  /** Bytes that were committed and are gone. */
  readonly gone: number;
}

class Proofs {
  readonly directory = temporaryDirectory();
  readonly remote = new FilesRemote();
  readonly rows: LiveFileRow[] = [];
  readonly abort = new AbortController();
  /** What raw bytes showed before of task numbers and directories. */
  shift: string | undefined;
  /** Between the numbers of two tasks. */
  step = 1;

  /** Where the mirror stands. */
  add({ content, relativePath, listedName, gone }: Mirror): string {
    const taskId = `${9_001 + this.step * this.rows.length}` as TaskId;
    const file = path.join(this.directory, JOB, 'live', taskId, 'stdout.log');
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
    const row = { ...NEW_ROW, taskId, jobId: JOB, position: content.length + gone, relativePath, listedName };
    this.rows.push(row);
    return file;
  }

  /** Mirrors of which only the bytes show which listed file each is, and listed files. */
  static of(contents: readonly string[], files: Readonly<Record<string, string | JobtailError>>): Proofs {
    const proofs = new Proofs();
    for (const content of contents) proofs.unknown(content);
    for (const [name, file] of Object.entries(files)) proofs.list(name, file);
    return proofs;
  }

  unknown(content: string, more: Partial<Mirror> = {}): string {
    return this.add({ content, relativePath: '/stdout.txt', listedName: null, gone: 0, ...more });
  }

  list(name: string, file: string | JobtailError): void {
    if (typeof file === 'string') this.remote.set(name, file);
    else this.remote.files.set(name, file);
  }

  /** Mirrors that are open now. */
  get open(): number {
    return openFilesIn(this.directory);
  }

  /** Whether the service has no text of files without bytes. */
  areAbsent = true;

  prove(sources?: ReadonlySet<string>, listed?: readonly string[]): Promise<(LiveProof | JobtailError)[]> {
    const { remote } = this;
    const empty = this.rows.filter(({ position }) => position === 0);
    return proveMirrors(this.rows, {
      ...(sources && { sources }),
      ...{ remote, jobId: JOB, signal: this.abort.signal, mirrorDirectory: this.directory },
      listed: listed ?? [...remote.files.keys()],
      absent: new Set(this.areAbsent ? empty.map(keyText) : []),
      capabilities: { get: () => this.shift, set: () => {} },
    });
  }
}

const GONE = new JobtailError('fault', 'no such file', { inPlace: 'nothing' });

const equal = (bytes: number, listedName: string | null): LiveProof => ({
  proof: { outcome: 'equal', bytes, remoteBytes: bytes },
  listedName,
});

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

  it('are proven as each by itself', async () => {
    await fc.assert(
      fc.asyncProperty(given, async ({ mirrors, files, pieceBytes }) => {
        const proofs = new Proofs();
        const { remote } = proofs;
        // The path of one does not show that of another.
        proofs.step = 1_000;
        remote.pieceBytes = pieceBytes;
        for (const [name, file] of files) proofs.list(name, file);
        for (const one of mirrors) proofs.add(one);
        const found = await proofs.prove();
        expect(found.map(toldOf)).toEqual(mirrors.map((one) => toldOf(byItself(one, remote.files))));
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
    const { content: here, relativePath, listedName: known, gone } = one;
    const bytes = here.length;
    const unproven = (reason: string): LiveProof => ({
      proof: { outcome: 'unproven', bytes, reason },
      listedName: null,
    });
    if (gone > 0) return unproven(`${gone} of its bytes are gone: ${bytes + gone} were mirrored`);
    if (bytes === 0) return equal(0, null);
    const end = relativePath.replace(/^\/?/, '/');
    const fitting = [...files.keys()].filter((name) => name.endsWith(end));
    const names = known !== null && fitting.includes(known) ? [known] : fitting;
    const equals: LiveProof[] = [];
    let first: LiveProof | undefined;
    let failure: JobtailError | undefined;
    for (const listedName of names) {
      const there = files.get(listedName) ?? Buffer.alloc(0);
      if (there instanceof JobtailError && there.code !== 'fault') failure ??= there;
      else if (there instanceof JobtailError) first ??= { ...unproven('refused'), listedName };
      else {
        const remoteBytes = there.length;
        const at = [...here].findIndex((letter, index) => there.toString()[index] !== letter);
        if (at >= 0) first ??= { proof: { outcome: 'different', bytes, remoteBytes, at }, listedName };
        else equals.push({ proof: { outcome: 'equal', bytes, remoteBytes }, listedName });
        if (at < 0 && listedName === known) return equals[0] ?? unproven('');
      }
      if ((equals.length > 1 || failure !== undefined) && equals.some(isWhole)) break;
    }
    const whole = equals.find(isWhole);
    if (failure !== undefined) return whole === undefined ? failure : { ...whole, listedName: null };
    const best = whole ?? equals[0];
    if (best === undefined) return first ?? unproven('the service lists no file that fits');
    return equals.length > 1 ? { ...best, listedName: null } : best;
  }

  const isWhole = ({ proof }: LiveProof) => proof.outcome === 'equal' && proof.remoteBytes === proof.bytes;
});

const TIMEOUT = new JobtailError('timeout', 'no response');
/** Something of each task, by the paths of `from` and the numbers after it. */
const eachTask = (count: number, from: number, what: (task: number) => string | JobtailError) =>
  Object.fromEntries(Array.from({ length: count }, (_, task) => [`/${from + task}/stdout.txt`, what(task)]));
const contentsOf = (count: number) => Array.from({ length: count }, (_, task) => `task ${task}\n`);

it('downloads that fail between others that do not end no pass', async () => {
  const proofs = Proofs.of(
    [],
    eachTask(9, 0, (task) => (task % 3 === 2 ? `task ${task}\n` : TIMEOUT)),
  );
  for (const [task, content] of contentsOf(9).entries()) {
    const relativePath = `/${task}/stdout.txt`;
    proofs.unknown(content, { relativePath, listedName: relativePath });
  }
  const found = await proofs.prove();
  expect(found.map((one) => (one instanceof JobtailError ? one.code : one.proof.outcome))).toEqual(
    Array(3).fill(['timeout', 'timeout', 'equal']).flat(),
  );
  expect(proofs.remote.maxAtATime, 'downloads at a time').toBe(1);
});

it('a source that cannot be downloaded keeps no other from proving a mirror', async () => {
  const proofs = Proofs.of(
    ['one\n', 'two\n'],
    eachTask(3, 1, (at) => (at === 0 ? TIMEOUT : 'one\n')),
  );
  expect(await proofs.prove()).toMatchObject([equal(4, null), { code: 'timeout' }]);
  expect(proofs.remote.downloads).toEqual([1, 2, 1, 2, 3].map((task) => `/${task}/stdout.txt`));
});

it('tasks that wrote the same need two downloads each, however many they are', async () => {
  const proofs = Proofs.of(
    Array(20).fill('the same\n'),
    eachTask(20, 0, () => 'the same\n'),
  );
  expect(await proofs.prove()).toEqual(Array(20).fill(equal(9, null)));
  expect(proofs.remote.downloads).toEqual(Array(20).fill(['/0/stdout.txt', '/1/stdout.txt']).flat());
});

it('the first source that is found shows the likely paths of the others', async () => {
  const proofs = Proofs.of(
    contentsOf(20),
    eachTask(20, 41, (task) => `task ${task}\n`),
  );
  proofs.remote.pieceBytes = 1;
  let pieces = 0;
  proofs.remote.onPiece = () => {
    pieces += 1;
  };
  const names = Object.keys(eachTask(20, 41, String));
  expect(await proofs.prove()).toMatchObject(names.map((listedName) => ({ listedName, proof: { outcome: 'equal' } })));
  expect(proofs.remote.downloads).toHaveLength(20 + 19);
  // Of the others, up to the first byte that differs.
  expect(pieces).toBe(10 * 7 + 10 * 8 + 19 * 5);
});

it('what the first source shows of paths holds after one whose path shows nothing', async () => {
  const files = { '/41/stdout.txt': 'one\n', '/logs/stdout.txt': 'two\n', '/43/stdout.txt': 'same\n' };
  const proofs = Proofs.of(['one\n', 'two\n', 'same\n'], { ...files, '/99/stdout.txt': 'same\n' });
  const names = Object.keys(files);
  expect(await proofs.prove()).toMatchObject(names.map((listedName) => ({ listedName })));
});

it.each(['known', 'recorded'])('the %s path of one live file proves no mirror of another task', async (what) => {
  const proofs = Proofs.of(['step 9\n'], { '/1/stdout.txt': 'step 10\n', '/2/stdout.txt': 'step 9\n' });
  const sources = what === 'known' ? undefined : new Set(['/2/stdout.txt']);
  proofs.shift = what === 'known' ? '9000' : undefined;
  proofs.unknown('step 9\n', { listedName: what === 'known' ? null : '/2/stdout.txt' });
  expect(await proofs.prove(sources)).toMatchObject([
    { listedName: '/1/stdout.txt', proof: { outcome: 'different', at: 5 } },
    equal(7, '/2/stdout.txt'),
  ]);
});

it('a file that is never listed is proven by its path, as its mirror was filled', async () => {
  const proofs = Proofs.of(['one\n', 'two\n'], { '/9001/stdout.txt': 'one\n', '/9002/stdout.txt': 'two more\n' });
  const found = proofs.prove(undefined, []);
  expect(await found).toMatchObject([equal(4, '/9001/stdout.txt'), { proof: { outcome: 'unproven' } }]);
  expect(proofs.remote.downloads).toEqual(['/9001/stdout.txt', '/9002/stdout.txt']);
  // Also beside that of another task, which is listed.
  expect(await proofs.prove(undefined, ['/9002/stdout.txt'])).toMatchObject([
    equal(4, '/9001/stdout.txt'),
    { listedName: '/9002/stdout.txt', proof: { outcome: 'different', at: 3 } },
  ]);
  proofs.list('/9002/stdout.txt', TIMEOUT);
  expect(await proofs.prove(undefined, [])).toMatchObject([{}, { code: 'timeout' }]);
});

it('an empty mirror shows no path of others', async () => {
  const files = { '/8001/stdout.txt': '', '/8002/stdout.txt': 'xy', '/9002/stdout.txt': 'x' };
  const proofs = Proofs.of(['', 'x'], files);
  proofs.areAbsent = false;
  expect(await proofs.prove()).toMatchObject([{ proof: { remoteBytes: 0 } }, equal(1, '/9002/stdout.txt')]);
});

it('an empty mirror whose path is known is not proven by the empty file of another task', async () => {
  const proofs = Proofs.of([''], { '/1/stdout.txt': 'x', '/2/stdout.txt': '' });
  proofs.areAbsent = false;
  proofs.shift = '9000';
  expect(await proofs.prove()).toMatchObject([{ listedName: '/1/stdout.txt', proof: { remoteBytes: 1 } }]);
});

const REFUSED = new JobtailError('fault', 'no whole files here');

it.each<[string, Readonly<Record<string, string | JobtailError>>, object]>([
  ['is equal to an empty file', { '/9001/stdout.txt': '' }, { outcome: 'equal', remoteBytes: 0 }],
  ['is behind a file with bytes', { '/9001/stdout.txt': 'x' }, { outcome: 'equal', remoteBytes: 1 }],
  ['is equal to the one that is empty', { '/1/stdout.txt': 'x', '/2/stdout.txt': '' }, { remoteBytes: 0 }],
  ['is not proven by a refusal', { '/9001/stdout.txt': REFUSED }, { outcome: 'unproven', reason: REFUSED.message }],
  ['is not proven without any file', {}, { outcome: 'unproven', reason: 'the service lists no file that fits' }],
])('an empty mirror %s', async (_, files, proof) => {
  const proofs = new Proofs();
  const mirror = proofs.unknown('');
  for (const [name, file] of Object.entries(files)) proofs.list(name, file);
  proofs.areAbsent = false;
  if (Object.keys(files).length === 0) proofs.list('/9001/stdout.txt', GONE);
  expect(await proofs.prove()).toMatchObject([{ proof }]);
  proofs.areAbsent = true;
  expect(await proofs.prove()).toEqual([equal(0, null)]);
  fs.rmSync(mirror);
  expect(await proofs.prove()).toEqual([equal(0, null)]);
});

it('an empty live file is absent if a response lacks it, but not if the response is cut or fails', async () => {
  const remote = new ModelRemote();
  const keys = (['stdout', 'stderr', 'log'] as const).map((file) => ({ ...NEW_ROW, file }));
  const [here, gone] = keys.map(keyText);
  const rows: LiveFileRow[] = keys.map((row, index) => ({ ...row, position: index === 2 ? 1 : 0 }));
  const absent = async () => {
    const found = await absentFiles(rows, { remote, jobId: JOB, signal: new AbortController().signal });
    expect(remote.held, 'contents that were not released').toBe(0);
    return [...found];
  };
  remote.files.set(`${here}`, Buffer.alloc(0));
  expect(await absent()).toEqual([gone]);
  remote.files.set(`${here}`, Buffer.from('text'));
  expect([await absent(), remote.textBytes]).toEqual([[], 1]);
  remote.poisoned.add(`${here}`);
  expect(await absent()).toEqual([]);
  remote.failures.push(new JobtailError('unreachable', 'no route'));
  await expect(absent()).rejects.toMatchObject({ code: 'unreachable' });
  // A call that one of its files makes fail shows nothing, but the next one does.
  for (let task = 1; task < 100; task++) rows.push({ ...NEW_ROW, taskId: String(task) as TaskId, position: 0 });
  for (const code of [undefined, 'interrupted', 'request-too-long'] as const) {
    if (code !== undefined) remote.failures.push(new JobtailError(code, 'it breaks off'));
    expect(await absent()).toHaveLength(37);
  }
  rows.splice(0, 2);
  rows.splice(1);
  remote.calls = 0;
  expect([await absent(), remote.calls]).toEqual([[], 0]);
});

it('a mirror that cannot be read keeps no other from being proven', async () => {
  const proofs = Proofs.of([], { '/1/stdout.txt': 'one\n', '/2/stdout.txt': 'two\n' });
  const directory = path.dirname(proofs.unknown('one\n'));
  proofs.unknown('two\n');
  fs.rmSync(directory, { recursive: true });
  fs.writeFileSync(directory, 'a file in the place of a directory');
  expect(await proofs.prove()).toMatchObject([{ code: 'local-io' }, equal(4, '/2/stdout.txt')]);
});

it.each([
  ['unreachable', 1],
  ['timeout', 3],
] as const)('a service that fails (%s) is not asked for every file', async (code, downloads) => {
  const proofs = Proofs.of(
    contentsOf(10),
    eachTask(10, 0, () => new JobtailError(code, 'it fails')),
  );
  if (code === 'unreachable') await expect(proofs.prove()).rejects.toMatchObject({ code });
  else expect(await proofs.prove()).toMatchObject(Array(10).fill({ code }));
  expect(proofs.remote.downloads).toHaveLength(downloads);
});

it('a mirror is not said to have lost bytes while a rotation moves them to a generation', async () => {
  const proofs = Proofs.of([], { '/1/stdout.txt': 'one\n' });
  proofs.unknown('one\n', { listedName: '/1/stdout.txt', gone: 7 });
  proofs.rows.push({ ...proofs.rows.pop(), rotation: 'copied' } as LiveFileRow);
  expect(await proofs.prove()).toEqual([equal(4, '/1/stdout.txt')]);
});

it('an abort ends it, and leaves no file open', async () => {
  const proofs = new Proofs();
  for (let task = 0; task < 3; task++) proofs.unknown(`${'x'.repeat(3_000)}${task}`);
  proofs.remote.set('/1/stdout.txt', `${'x'.repeat(3_000)}1`);
  proofs.remote.onPiece = () => {
    expect(proofs.open).toBe(1);
    proofs.abort.abort();
  };
  await expect(proofs.prove()).rejects.toMatchObject({ code: 'aborted' });
  expect(proofs.open).toBe(0);
});
