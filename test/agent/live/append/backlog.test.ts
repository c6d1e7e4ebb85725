/** A long backlog of which the service could not decode all: its raw bytes are taken once, while they arrive. */
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText } from '../../../../src/job.ts';
import { polledPlace, STDOUT } from '../../../support/engine.ts';
import { expectCases } from '../../../support/errors.ts';
import { lived } from '../story.ts';

const NAME = keyText(STDOUT);
/** Full of characters that block edges cut. */
const TEXT = Buffer.from(Array.from({ length: 20_000 }, (_, line) => `${line} 日本語のログ\n`).join(''));

/** `onPiece` is called before and after each piece of a download, with its bytes before that. */
function setUp(content: Buffer, onPiece: (at: number, isTaken: boolean) => void) {
  const place = polledPlace({ longBacklogBytes: 100_000 });
  const { remote, engine } = place;
  engine.store.capabilities.set('text-encoding', 'utf-8');
  remote.files.set(NAME, content);
  const download = remote.downloadFile.bind(remote);
  remote.downloadFile = (jobId, name, sink, signal) => {
    let at = 0;
    const noted = async (piece: Buffer) => {
      onPiece(at, false);
      await sink(piece);
      at += piece.length;
      onPiece(at, true);
    };
    return download(jobId, name, noted, signal);
  };
  return place;
}

test('each poll of a long backlog requests and appends what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'backlog.txt'), lived);
});

describe('a long backlog full of cut characters', () => {
  test('goes on where it was when the download breaks in its midst', async () => {
    const long = Buffer.concat(Array<Buffer>(8).fill(TEXT));
    let breaksAt = 2_000_000;
    const { poll, mirror, row } = setUp(long, (at) => {
      if (at >= breaksAt) throw new JobtailError('interrupted', 'the connection broke');
    });
    expect(await poll()).toBe('interrupted');
    const came = mirror();
    expect(came.length).toBeGreaterThan(1_900_000);
    expect(came.equals(long.subarray(0, came.length))).toBe(true);
    breaksAt = Number.POSITIVE_INFINITY;
    for (let polls = 0; polls < 2; polls++) await poll();
    expect(mirror().equals(long)).toBe(true);
    expect(row()).toMatchObject({ generation: 1, error: null });
  });

  test('is appended while its raw bytes arrive, so that no memory has to hold them', async () => {
    const lengths: number[] = [];
    const { remote, poll, mirror } = setUp(TEXT, (_, isTaken) => void (isTaken && lengths.push(mirror().length)));
    remote.maxTextBytes = TEXT.length / 2;
    expect(await poll()).toBe('current');
    expect(lengths.filter((length) => length > 0 && length < TEXT.length)).not.toEqual([]);
  });
});
