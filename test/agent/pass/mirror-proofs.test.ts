/** What is proven of a mirror is what comparing it with each listed file that it may be would prove. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { absentFiles, type LiveProof, proveMirrors } from '../../../src/agent/pass/mirror-proofs.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { keyText, type TaskId } from '../../../src/job.ts';
import type { LiveFileRow } from '../../../src/store/rows.ts';
import { expectCases } from '../../support/errors.ts';
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

/** The steps of mirror-proofs.txt: mirrors, listed files, and what is proven of them by which downloads. */
async function proven(written: string): Promise<string[]> {
  const proofs = new Proofs();
  const { remote, rows } = proofs;
  const result: string[] = [];
  let sources: ReadonlySet<string> | undefined;
  let listed: readonly string[] | undefined;
  let pieces = 0;
  remote.onPiece = () => void pieces++;
  const fileOf = (text: string, task = 0) => {
    const [code = '', ...reason] = text.slice(2).split(' ');
    if (!text.startsWith('! ')) return (JSON.parse(text) as string).replace('%', `${task}`);
    const inPlace = code === 'gone' ? ({ inPlace: 'nothing' } as const) : {};
    return new JobtailError(code === 'gone' ? 'fault' : (code as ErrorCode), reason.join(' ') || 'it fails', inPlace);
  };
  for (const step of written.split('; ')) {
    const [word = '', first = '', ...rest] = step.split(' ');
    const text = rest.join(' ');
    const steps: Readonly<Record<string, () => unknown>> = {
      mirror: () => proofs.unknown(JSON.parse(first) as string, JSON.parse(text || '{}') as Partial<Mirror>),
      mirrors: () => {
        for (let task = 0; task < Number(first); task++) proofs.unknown(`${fileOf(text, task)}`);
      },
      file: () => proofs.list(first, fileOf(text)),
      files: () => {
        const [from, ...what] = rest;
        for (let task = 0; task < Number(first); task++)
          proofs.list(`/${Number(from) + task}/stdout.txt`, fileOf(what.join(' '), task));
      },
      rotates: () => rows.push({ ...rows.pop(), rotation: 'copied' } as LiveFileRow),
      shift: () => Object.assign(proofs, { shift: first }),
      sources: () => (sources = new Set([first])),
      listed: () => (listed = first === 'none' ? [] : [first]),
      present: () => Object.assign(proofs, { areAbsent: first === 'no' }),
      removed: () => fs.rmSync(path.join(proofs.directory, JOB, 'live', first), { recursive: true }),
      blocked: () => {
        steps['removed']?.();
        fs.writeFileSync(path.join(proofs.directory, JOB, 'live', first), 'a file in the place of a directory');
      },
      piece: () => Object.assign(remote, { pieceBytes: Number(first) }),
    };
    if (word !== 'prove') {
      if (steps[word] === undefined) throw new Error(`no step: ${step}`);
      steps[word]();
      continue;
    }
    remote.downloads.length = 0;
    pieces = 0;
    const found = await proofs.prove(sources, listed).catch((thrown: JobtailError) => `thrown ${thrown.code}`);
    const { downloads } = remote;
    const names =
      downloads.length > 9 ? `${downloads.length}, first ${downloads[0]}, ${downloads[1]}` : downloads.join(', ');
    result.push(`prove: downloads [${names}] of ${pieces} pieces${typeof found === 'string' ? `, ${found}` : ''}`);
    if (typeof found === 'string') continue;
    const lines = found.map((one, index) =>
      `${rows[index]?.taskId}: ${shownOf(one)}`.replaceAll(proofs.directory, 'DIR'),
    );
    result.push(...(lines.length > 9 ? [...lines.slice(0, 2), lines.at(-1) ?? ''] : lines).map((line) => `  ${line}`));
  }
  expect([remote.maxAtATime > 1, proofs.open], 'downloads at a time, and mirrors that stay open').toEqual([false, 0]);
  return result;
}

function shownOf(one: LiveProof | JobtailError): string {
  if (one instanceof JobtailError) return `${one.code}: ${one.message}`;
  const { outcome, ...more } = one.proof;
  return `${outcome} ${JSON.stringify(more)}${one.listedName === null ? '' : `, ${one.listedName}`}`;
}

it('each mirror is proven, by the downloads and by the listed file that are written', async () => {
  await expectCases(path.join(import.meta.dirname, 'mirror-proofs.txt'), proven);
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
