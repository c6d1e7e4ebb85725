/** What is proven of a mirror is what comparing it with each listed file that it may be would prove. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { absentFiles, type LiveProof, proveMirrors } from '../../../src/agent/pass/mirror-proofs.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { keyText, type TaskId } from '../../../src/job.ts';
import type { LiveFileRow } from '../../../src/store/rows.ts';
import { expectCases } from '../../support/errors.ts';
import { NEW_ROW } from '../../support/live-place.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { openFilesIn, temporaryDirectory } from '../../support/temp-directory.ts';
import { FilesRemote, JOB } from '../results/place.ts';

interface Mirror {
  readonly relativePath?: string;
  readonly listedName?: string | null;
  /** Bytes that were committed and are gone. */
  readonly gone?: number;
}

class Proofs {
  readonly directory = temporaryDirectory();
  readonly remote = new FilesRemote();
  readonly rows: LiveFileRow[] = [];
  readonly abort = new AbortController();
  /** What raw bytes showed before of task numbers and directories. */
  shift: string | undefined;
  /** Whether the service has no text of files without bytes. */
  areAbsent = true;

  mirror(content: string, { relativePath = '/stdout.txt', listedName = null, gone = 0 }: Mirror = {}): void {
    const taskId = `${9_001 + this.rows.length}` as TaskId;
    const file = path.join(this.directory, JOB, 'live', taskId, 'stdout.log');
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
    this.rows.push({ ...NEW_ROW, taskId, jobId: JOB, position: content.length + gone, relativePath, listedName });
  }

  list(name: string, file: string | JobtailError): void {
    if (typeof file === 'string') this.remote.set(name, file);
    else this.remote.files.set(name, file);
  }

  /** Mirrors that are open now. */
  get open(): number {
    return openFilesIn(this.directory);
  }

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
      mirror: () => proofs.mirror(JSON.parse(first) as string, JSON.parse(text || '{}') as Mirror),
      mirrors: () => {
        for (let task = 0; task < Number(first); task++) proofs.mirror(`${fileOf(text, task)}`);
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
  for (let task = 0; task < 3; task++) proofs.mirror(`${'x'.repeat(3_000)}${task}`);
  proofs.remote.set('/1/stdout.txt', `${'x'.repeat(3_000)}1`);
  proofs.remote.onPiece = () => {
    expect(proofs.open).toBe(1);
    proofs.abort.abort();
  };
  await expect(proofs.prove()).rejects.toMatchObject({ code: 'aborted' });
  expect(proofs.open).toBe(0);
});
