/** A long backlog of which the service could not decode all: its raw bytes are taken once, while they arrive. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DirectBytes } from '../../../../src/agent/ports/transfer.ts';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey } from '../../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { expectCases } from '../../../support/errors.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { lived } from '../story.ts';

const NAME = keyText(STDOUT);
const LONG_BYTES = 100_000;
/** Full of characters that block edges cut. */
const TEXT = Buffer.from(Array.from({ length: 20_000 }, (_, line) => `${line} 日本語のログ\n`).join(''));

function setUp(watched: readonly LiveFileKey[] = [STDOUT], direct?: DirectBytes) {
  const remote = new ModelRemote();
  let time = 1_000_000;
  const engine = new Engine({
    directory: temporaryDirectory(),
    remote,
    now: () => time,
    longBacklogBytes: LONG_BYTES,
    ...(direct && { direct }),
  });
  engine.watch(watched);
  engine.store.capabilities.set('text-encoding', 'utf-8');
  onTestFinished(() => engine.kill());
  remote.files.set(NAME, TEXT);
  const poll = async () => {
    time += 1_000;
    const polled = await engine.poll();
    expect(remote.held).toBe(0);
    return polled.outcomes.get(NAME) ?? polled.errors.get(NAME)?.code;
  };
  return { remote, engine, poll, mirror: () => fs.readFileSync(engine.mirror(STDOUT)) };
}

test('each poll of a long backlog requests and appends what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'backlog.txt'), lived);
});

describe('a long backlog full of cut characters', () => {
  test('goes on where it was when the download breaks in its midst', async () => {
    const { remote, engine, poll, mirror } = setUp();
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = async (jobId, path, sink, signal) => {
      let bytes = 0;
      const broken = new JobtailError('interrupted', 'the connection broke');
      await download(
        jobId,
        path,
        async (piece) => {
          bytes += piece.length;
          if (bytes > 2_000_000) throw broken;
          await sink(piece);
        },
        signal,
      );
      return bytes;
    };
    const long = Buffer.concat(Array.from({ length: 8 }, () => TEXT));
    remote.files.set(NAME, long);
    expect(await poll()).toBe('interrupted');
    const came = mirror();
    expect(came.length).toBeGreaterThan(1_900_000);
    expect(came.equals(long.subarray(0, came.length))).toBe(true);
    remote.downloadFile = download;
    for (let polls = 0; polls < 2; polls++) await poll();
    expect(mirror().equals(long)).toBe(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 1, error: null });
  });

  test('is appended while its raw bytes arrive, so that no memory has to hold them', async () => {
    const { remote, poll, mirror } = setUp();
    const lengths: number[] = [];
    remote.maxTextBytes = TEXT.length / 2;
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = (jobId, path, sink, signal) => {
      const noted = async (piece: Buffer) => {
        await sink(piece);
        lengths.push(mirror().length);
      };
      return download(jobId, path, noted, signal);
    };
    expect(await poll()).toBe('current');
    expect(lengths.filter((length) => length > 0 && length < TEXT.length)).not.toEqual([]);
  });
});
