/** The raw file of a live file: which paths are downloaded, what is accepted, and what is remembered of it. */
import path from 'node:path';
import { expect, test } from 'vitest';
import type { LiveBytes } from '../../../src/agent/ports/live-source.ts';
import type { Sink } from '../../../src/agent/ports/server.ts';
import { asJobtailError, type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText } from '../../../src/job.ts';
import { textSources } from '../../../src/remote/text/text-source.ts';
import { JOB, STDOUT } from '../../support/engine.ts';
import { expectCases, writtenBytes } from '../../support/errors.ts';
import { ModelRemote } from '../../support/model-remote.ts';

/** `_` is a blank. */
const bytesOf = (written: string) =>
  Buffer.from(writtenBytes(written).toString('latin1').replaceAll('_', ' '), 'latin1');

/** Its whole files are at paths of their own, and may fail. */
class RawRemote extends ModelRemote {
  readonly noted: string[] = [];
  readonly paths = new Map<string, Buffer>();
  readonly failing = new Map<string, readonly string[]>();
  listing: string[] | undefined;
  isOpen = false;

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
    onChange: (what) => changes.push(what),
  })(JOB);
  return { remote, known, changes, noted, source };
}

type Place = ReturnType<typeof setUp>;

async function download({ remote, source, noted }: Place, from = 0, listedName?: string): Promise<string> {
  const calls = { remote, whole: remote, signal: new AbortController().signal };
  const request = { ...STDOUT, from, known: from, listedName: listedName ?? null, isThorough: true };
  const answer = (await source.bytes([request], calls, true)).files.get(keyText(STDOUT)) as LiveBytes;
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

test('the raw file is found, proven and remembered as is written in raw-text.txt', async () => {
  await expectCases(path.join(import.meta.dirname, 'raw-text.txt'), async (written) => {
    const place = setUp();
    const { remote, known, changes } = place;
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
      else if (word === 'download')
        lines.push(await download(place, Number(first), second === '' ? undefined : second));
      else expect.fail(step);
    }
    return [...lines, ...changes, ...[...known].map((pair) => pair.join(' = '))];
  });
});
