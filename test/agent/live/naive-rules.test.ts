/**
 * What the model test is worth: the rules that existing clients use to find their next offset fail in it, on nothing
 * but well-formed text that is written in parts (docs/dev/servers.md 1.2). The engine passes.
 */
import fs from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyText } from '../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { numRuns } from '../../support/property-runs.ts';
import { removedDirectory } from '../../support/temp-directory.ts';
import { bytesOf, piece, TEXT_ATOMS } from './model/content.ts';

const NAME = keyText(STDOUT);

interface Follower {
  poll(): Promise<void>;
  mirror(): Buffer;
}

/** Appends the whole text each time, and takes `advance` of it for the bytes that were read. */
function naiveFollower(remote: ModelRemote, advance: (text: string) => number): Follower {
  let offset = 0;
  let mirror = Buffer.alloc(0);
  return {
    async poll() {
      const { parts } = await remote.readParts(JOB, [{ ...STDOUT, offset }], new AbortController().signal);
      for (const { content } of parts) {
        const bytes = await content.read(0, content.length);
        mirror = Buffer.concat([mirror, bytes]);
        offset += advance(bytes.toString());
        await content.release();
      }
    },
    mirror: () => mirror,
  };
}

/** A job writes text, a part at a time; the follower polls after each part. */
const writes = fc.array(fc.record({ piece, share: fc.double({ min: 0, max: 1, noNaN: true }) }), {
  minLength: 1,
  maxLength: 6,
});

function property(follow: (remote: ModelRemote, directory: string) => Follower) {
  return fc.asyncProperty(writes, (parts) =>
    removedDirectory(async (directory) => {
      const remote = new ModelRemote();
      const follower = follow(remote, directory);
      const text = Buffer.concat(
        parts.map(({ piece: what }) => bytesOf(what, { letter: 'A', atoms: TEXT_ATOMS, everyBytes: 80 })),
      );
      const ends = parts.map(({ share }) => Math.floor(share * text.length)).sort((a, b) => a - b);
      for (const end of [...ends, text.length, text.length]) {
        remote.files.set(NAME, text.subarray(0, end));
        await follower.poll();
        const mirror = follower.mirror();
        if (!text.subarray(0, mirror.length).equals(mirror)) throw new Error('the mirror is no prefix');
      }
      if (!follower.mirror().equals(text)) throw new Error('the mirror is not the file');
    }),
  );
}

describe('the next offset', () => {
  test.each([
    ['offset + utf8 bytes', (text: string) => Buffer.byteLength(text)],
    ['offset + string length', (text: string) => text.length],
  ])('%s fails', async (_, advance) => {
    // It ends with the first text that shows the mistake; a hundred texts sometimes had none.
    const checked = await fc.check(
      property((remote) => naiveFollower(remote, advance)),
      numRuns(50_000),
    );
    expect(checked.failed, `seed ${checked.seed}`).toBe(true);
  });

  test('where the mirror ends, checked by an overlap, holds', async () => {
    const engineFollower = (remote: ModelRemote, directory: string): Follower => {
      const engine = new Engine({ directory, remote, now: () => 0 });
      engine.watch([STDOUT]);
      return {
        async poll() {
          await engine.poll();
        },
        mirror: () => fs.readFileSync(engine.mirror(STDOUT)),
      };
    };
    await fc.assert(property(engineFollower), numRuns(60));
  });
});
