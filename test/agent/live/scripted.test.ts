/** What polls of one live file do with responses that the test gives, and when raw bytes are requested again. */
import { expect, it } from 'vitest';
import { type CatchUpContext, catchUp } from '../../../src/agent/live/catch-up.ts';
import type { LiveFile } from '../../../src/agent/live/mirror/live-file.ts';
import { RawBytes } from '../../../src/agent/live/raw-bytes.ts';
import type { LiveBytes } from '../../../src/agent/ports/live-source.ts';
import { LivePlace } from '../../support/live-place.ts';
import { responseOf, type Shown } from '../../support/live-response.ts';

const KIB_256 = 256 * 1024;

class Place {
  now = 0;
  downloads = 0;
  readonly live = new LivePlace(() => this.now);
  readonly rawBytes = new RawBytes(() => this.now);

  response(shown: Shown): LiveBytes {
    return responseOf(shown, () => {
      this.downloads += 1;
    });
  }

  /** A poll that gets this response, however often it requests. */
  async poll(shown: Shown, isFinal = false) {
    const { downloads } = this;
    const context: CatchUpContext = {
      source: { bytes: () => Promise.reject(new Error('it is not used')), overlapStart: () => 0 },
      rawBytes: this.rawBytes,
      isFinal,
      request: async ({ from }) => this.response({ from, ...shown }),
      waitForCommit: async () => {},
    };
    const outcome = await this.live.during((file) => catchUp(file, context));
    return [outcome, this.downloads - downloads];
  }

  /** The pause from now on after which raw bytes are due, for a response with this end. */
  isDueAfter(file: LiveFile, ms: number, end = 0): boolean[] {
    const { now } = this;
    const response = this.response({ text: 'x'.repeat(end) });
    const due = [ms - 1, ms].map((after) => {
      this.now = now + after;
      return this.rawBytes.isDue(file.memory, false, response);
    });
    this.now = now;
    return due;
  }
}

it('raw bytes are due again after a second, and one for each 256 KiB; the pause doubles without news, and with each refusal', async () => {
  const place = new Place();
  const content = Buffer.alloc(KIB_256, 'x');
  await place.live.during(async (file) => {
    const raw = async (shown: Shown, isFinal = false) => {
      place.now += 3_600_000;
      return await place.rawBytes.catchUp(file, place.response(shown), isFinal);
    };
    const expectPause = (ms: number, end = 0) =>
      expect([ms, place.isDueAfter(file, ms, end)]).toEqual([ms, [false, true]]);
    await file.append(content);
    expect(place.rawBytes.isDue(file.memory, false)).toBe(true);
    for (const seconds of [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]) {
      expect(await raw({ raw: content })).toMatchObject({ kind: 'same' });
      expectPause(seconds * 1_000);
      // A response with another end shows that the file changed.
      expectPause(2_000, 7);
      expect(place.rawBytes.isDue(file.memory, true)).toBe(true);
    }
    await raw({ raw: Buffer.concat([content, content]) });
    expect(file.length).toBe(2 * KIB_256);
    for (const seconds of [3, 6]) {
      expectPause(3_000);
      await raw({ raw: Buffer.concat([content, content]) });
      if (seconds === 6) expectPause(6_000);
    }
    // The refused bytes count as well, if the service shows how many there are.
    for (const seconds of [4, 8, 16]) {
      expect(await raw({ text: 'x'.repeat(KIB_256) })).toBeUndefined();
      expectPause(seconds * 1_000, KIB_256);
      expect(file.memory.raw.reason).toBe('it is refused');
    }
    // A last pass does not wait, so its refusal lengthens nothing.
    const { at } = file.memory.raw;
    await raw({}, true);
    expect([file.memory.raw.at, file.memory.raw.refusals]).toEqual([at, 3]);
    for (const _ of [1, 2]) {
      await raw({ raw: Buffer.concat([content, content]), text: 'x' });
      expect(file.memory.raw).toMatchObject({ reason: '', refusals: 0 });
      await raw({});
      expectPause(3_000);
    }
  });
});

it('responses that contradict each other are given half a minute, then raw bytes decide; a clear one ends that time', async () => {
  const place = new Place();
  const unclear: Shown = { text: 'text', follows: 'unclear' };
  for (const [seconds, shown, ...outcome] of [
    [0, unclear, 'unclear', 0],
    [29, unclear, 'unclear', 0],
    [1, unclear, 'unclear', 1],
    [1, { text: 'text' }, 'current', 0],
    [30, unclear, 'unclear', 0],
    [29, unclear, 'unclear', 0],
    [1, { ...unclear, raw: 'text' }, 'unclear', 1],
    [2, { ...unclear, raw: 'text and more' }, 'current', 1],
  ] as const) {
    place.now += seconds * 1_000;
    expect(await place.poll(shown)).toEqual(outcome);
  }
  expect(place.live.read()).toBe('text and more');
});

it('a file that ends inside a character does so until its raw bytes are refused', async () => {
  const place = new Place();
  const incomplete: Shown = { text: 'text', follows: 'incomplete-character' };
  expect(await place.poll(incomplete)).toEqual(['incomplete-character', 0]);
  place.now += 30_000;
  expect(await place.poll({ ...incomplete, raw: 'text' })).toEqual(['incomplete-character', 1]);
  place.now += 20_000;
  expect(await place.poll(incomplete)).toEqual(['incomplete-character', 0]);
  place.now += 60_000;
  expect(await place.poll(incomplete)).toEqual(['raw-unavailable', 1]);
  // A last pass waits for nothing.
  expect(await place.poll({ ...incomplete, raw: 'text\xe2' }, true)).toEqual(['current', 1]);
});

it('a response for which raw bytes showed that the mirror has all is not compared again, but another one is', async () => {
  const place = new Place();
  await place.poll({ text: 'a line\n' });
  const hidden: Shown = { text: 'a ', follows: 'hidden', sameness: 'one', raw: 'a line\n' };
  const polls = async (...all: readonly Shown[]) => {
    const found: unknown[] = [];
    for (const shown of all) {
      place.now += 60_000;
      found.push(await place.poll({ ...hidden, ...shown }));
    }
    return found;
  };
  expect(await polls({}, {}, { sameness: 'two' }, {}, {})).toEqual([1, 0, 1, 1, 0].map((count) => ['current', count]));
  // From another offset, the same text shows other bytes.
  expect(await polls({ from: 1 }, { from: 1 })).toEqual([1, 0].map((count) => ['current', count]));
});
