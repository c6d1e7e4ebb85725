/** When raw bytes are requested again. */
import { expect, it } from 'vitest';
import type { LiveFile } from '../../../src/agent/live/mirror/live-file.ts';
import { RawBytes } from '../../../src/agent/live/raw-bytes.ts';
import { LivePlace } from '../../support/live-place.ts';
import { responseOf, type Shown } from '../../support/live-response.ts';

const KIB_256 = 256 * 1024;

class Place {
  now = 0;
  readonly live = new LivePlace(() => this.now);
  readonly rawBytes = new RawBytes(() => this.now);

  /** The pause from now on after which raw bytes are due, for a response with this end. */
  isDueAfter(file: LiveFile, ms: number, end = 0): boolean[] {
    const { now } = this;
    const response = responseOf({ text: 'x'.repeat(end) }, () => {});
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
      return await place.rawBytes.catchUp(
        file,
        responseOf(shown, () => {}),
        isFinal,
      );
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
