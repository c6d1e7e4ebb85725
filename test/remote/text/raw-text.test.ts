/** What is requested of a live file and its raw file, what is accepted, and what is remembered of it. */
import path from 'node:path';
import { expect, test } from 'vitest';
import type { BytesRequest, LiveBytes } from '../../../src/agent/ports/live-source.ts';
import type { PartRequest, Parts, Sink } from '../../../src/agent/ports/server.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText } from '../../../src/job.ts';
import { textSources } from '../../../src/remote/text/text-source.ts';
import { JOB, STDOUT } from '../../support/engine.ts';
import { expectCases, writtenBytes } from '../../support/errors.ts';
import { MemoryContent, ModelRemote } from '../../support/model-remote.ts';

/** `_` is a blank. */
const bytesOf = (written: string) =>
  Buffer.from(writtenBytes(written).toString('latin1').replaceAll('_', ' '), 'latin1');

/** Its whole files are at paths of their own, and may fail. */
class RawRemote extends ModelRemote {
  readonly noted: string[] = [];
  readonly paths = new Map<string, Buffer>();
  readonly failing = new Map<string, readonly string[]>();
  readonly asked: string[] = [];
  /** The next responses, as texts; `-` is none of the file. */
  readonly scripted: string[] = [];
  listing: string[] | undefined;
  isOpen = false;

  override async readParts(job: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    for (const { offset, enoughBytes } of wanted)
      this.asked.push(`from ${offset}${enoughBytes ? `, ${enoughBytes} bytes` : ''}`);
    const text = this.scripted.shift();
    if (text === undefined) return await super.readParts(job, wanted, signal);
    const part = { ...STDOUT, offset: 0, relativePath: null };
    return { parts: text === '-' ? [] : [{ ...part, content: new MemoryContent(bytesOf(text), this) }], refused: 0 };
  }

  override async listChangedFiles() {
    this.noted.push('list');
    if (this.listing === undefined) throw new JobtailError('fault', 'no listing');
    return this.listing;
  }

  override async downloadFile(_: JobId, name: string, sink: Sink) {
    return await this.send(name, sink, 'service');
  }

  async send(name: string, sink: Sink, by: string): Promise<number> {
    this.noted.push(`${name} by ${by}`);
    const [code, when] = this.failing.get(`${by}:${name}`) ?? this.failing.get(by) ?? [];
    const fail = () => {
      throw new JobtailError(code as ErrorCode, `${by} fails`, { hint: 'look' });
    };
    const bytes = this.paths.get(name);
    if (code !== undefined && when === undefined) fail();
    if (bytes === undefined) throw new JobtailError('not-found', `no file ${name}`, { hint: 'look' });
    for (let at = 0; at < bytes.length; at += 40_000) await sink(bytes.subarray(at, at + 40_000));
    if (code !== undefined) fail();
    return bytes.length;
  }
}

function setUp() {
  const remote = new RawRemote();
  const known = new Map<string, string>();
  const [changes, noted] = [[] as string[], remote.noted];
  const source = textSources({
    capabilities: { get: (name) => known.get(name), set: (name, to) => void known.set(name, to) },
    direct: { downloadFile: (_, name, sink) => remote.send(name, sink, 'direct'), isOpen: () => remote.isOpen },
    batchLimit: { files: 9 },
    longBacklogBytes: 100,
    onChange: (what) => changes.push(what),
  })(JOB);
  return { remote, known, changes, noted, source };
}

type Place = ReturnType<typeof setUp>;

async function bytes({ remote, source }: Place, more: Partial<BytesRequest>): Promise<LiveBytes> {
  const calls = { remote, whole: remote, signal: new AbortController().signal };
  const request = { ...STDOUT, from: 0, known: 0, listedName: null, isThorough: false, ...more };
  return (await source.bytes([request], calls, true)).files.get(keyText(STDOUT)) as LiveBytes;
}

/** The certain bytes, by which requests, and what follows. */
async function read(place: Place, more: Partial<BytesRequest>): Promise<string> {
  place.remote.asked.length = 0;
  const answer = await bytes(place, more);
  const found = Buffer.concat([await answer.next(99), await answer.next(99)]);
  const follows = await answer.whatFollows();
  await answer.release();
  return `${place.remote.asked.join('; ')}: ${JSON.stringify(String(found))}, ${follows}`;
}

async function download(place: Place, from = 0, listedName: string | null = null): Promise<string> {
  const { remote, noted } = place;
  const answer = await bytes(place, { from, known: from, listedName, isThorough: true });
  noted.length = 0;
  let received = Buffer.alloc(0);
  const outcome = await answer.raw
    .download(() => {
      received = Buffer.alloc(0);
      return (bytes) => {
        received = Buffer.concat([received, bytes]);
      };
    })
    .then((end) => JSON.stringify(end))
    .catch((thrown: unknown) => {
      const { code, message, hint } = asJobtailError(thrown);
      return `${code}: ${message} (${hint})`;
    });
  await answer.release();
  expect(remote.held).toBe(0);
  return `${noted.join(', ')}: ${received.length} bytes, ${outcome}`;
}

test('a live file is read, and its raw file is found, proven and remembered, as is written in raw-text.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'raw-text.txt'), async (written) => {
    const place = setUp();
    const { remote, known, changes, source } = place;
    const lines: string[] = [];
    for (const step of written.split('; ')) {
      const [word = '', first = '', second = ''] = step.split(' ');
      if (word === 'text') remote.files.set(keyText(STDOUT), bytesOf(first));
      else if (word === 'file') remote.paths.set(first, bytesOf(second));
      else if (word === 'gone') remote.paths.delete(first);
      else if (word === 'list') remote.listing = step.split(' ').slice(1);
      else if (word === 'fail') remote.failing.set(first, step.split(' ').slice(2));
      else if (word === 'works') remote.failing.delete(first);
      else if (word === 'open') remote.isOpen = first === 'true';
      else if (word === 'learned') known.set(first, second);
      else if (word === 'decodes') remote.decoding = { latin1: first === 'latin1', stream: first === 'stream' };
      else if (word === 'most') remote.maxTextBytes = Number(first);
      else if (word === 'overlap') lines.push(`${first} from ${source.overlapStart(bytesOf(first))}`);
      else if (word === 'responses') remote.scripted.push(...step.split(' ').slice(1));
      else if (word === 'read') lines.push(await read(place, { [first]: second === 'true' || Number(second) }));
      else if (word === 'download') lines.push(await download(place, Number(first), second === '' ? null : second));
      else expect.fail(step);
    }
    return [...lines, ...changes, ...[...known].map((pair) => pair.join(' = '))];
  });
});
