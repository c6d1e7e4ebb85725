import fs from 'node:fs';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ModelDisk } from '../../../support/engine.ts';
import { LivePlace, REWRITTEN } from '../../../support/live-place.ts';

/** Ends the work at its step number `last`; false once there are fewer steps. */
function killAt(place: LivePlace, last: number): () => boolean {
  let steps = 0;
  place.onStep = () => {
    if (steps++ === last) throw new Error('killed');
  };
  return () => steps > last;
}

const rotate = (place: LivePlace, keepGenerations: number) =>
  place.during((file) => file.startGeneration(REWRITTEN), { keepGenerations });

/** How many generations are kept, and the step of the next start at which a second kill comes. */
const KILLS = [5, 1, 0].flatMap((kept) => [0, 1, 2, 3, 4, 5].map((step) => [kept, step] as const));

describe('a new generation', () => {
  test('keeps the old ones by number, and the inode of the mirror', async () => {
    const place = await LivePlace.of('one');
    const { ino } = fs.statSync(place.path);
    for (const next of ['two', 'three', 'four']) {
      await rotate(place, 2);
      await place.write(next);
    }
    expect([0, 1, 2, 3].map((back) => place.read(back))).toEqual(['four', 'three', 'two', undefined]);
    expect(place.committed).toMatchObject({ generation: 4, position: 4 });
    expect(fs.statSync(place.path).ino).toBe(ino);
  });

  test('is empty on the disk before it is committed, and nothing that was known of the old one holds', async () => {
    const [place, disk] = [await LivePlace.of('one'), new ModelDisk()];
    place.commit({ ...place.committed, verified: 3, unverified: 'for the test' });
    const steps: string[] = [];
    disk.beforeStep = async (step) => void steps.push(step);
    place.onStep = (step) => void steps.push(step);
    await place.during((file) => file.startGeneration(REWRITTEN), { openFile: disk.open.bind(disk) });
    expect(steps.slice(steps.indexOf('truncate'), steps.indexOf('rotation:end') + 1)).toEqual([
      ...['truncate', 'datasync', 'rotation:end'],
    ]);
    const fresh = { generation: 2, position: 0, verified: null, unverified: null, copyMark: null, rotation: null };
    expect(place.committed).toMatchObject(fresh);
    await place.write('two');
    expect(place.committed).toMatchObject({ position: 3, checksum: crc32('two') });
  });

  test.each(KILLS)('killed at any step, of %i kept, and again at %i, loses nothing', async (keepGenerations, again) => {
    for (let last = 0, killed = true; killed; last++) {
      const place = await LivePlace.of('one');
      await rotate(place, keepGenerations);
      await place.write('two');
      const { ino } = fs.statSync(place.path);
      const wasKilled = killAt(place, last);
      await rotate(place, keepGenerations).catch(() => {});
      killed = wasKilled();
      // At no moment is the old generation nowhere, nor is there a wrong byte.
      const everywhere = place.files().map((file) => fs.readFileSync(place.path.replace('stdout.log', file), 'latin1'));
      if (keepGenerations > 0) expect(everywhere).toContain('two');
      expect(['two', '']).toContain(place.read());
      place.kill();

      // What is found at the next start goes on: as if it had never begun, or to its end.
      const begun = place.committed.rotation !== null || place.committed.generation === 3;
      killAt(place, again);
      await place.during(async () => {}, { keepGenerations }).catch(() => {});
      place.kill();
      await place.during(async () => {}, { keepGenerations });
      const { generation, position, rotation } = place.committed;
      expect(rotation).toBeNull();
      expect(generation).toBe(begun ? 3 : 2);
      expect(position).toBe(begun ? 0 : 3);
      const old = [place.read(1), place.read(2)];
      const kept = begun ? ['two', 'one'] : ['one', undefined];
      expect(old).toEqual([kept[0], kept[1]].map((text, index) => (index < keepGenerations ? text : undefined)));
      expect(place.read()).toBe(begun ? '' : 'two');
      expect(place.files()).not.toContain('stdout.log.keeping');
      expect(fs.statSync(place.path).ino).toBe(ino);
    }
  });

  test('makes a copy that a power loss tore anew', async () => {
    const place = await LivePlace.of('one');
    place.onStep = (step) => {
      if (step === 'rotation:copied') throw new Error('power loss');
    };
    await expect(rotate(place, 5)).rejects.toThrow('power loss');
    expect(place.committed.rotation).toBe('copying');
    fs.truncateSync(`${place.path}.keeping`, 1);
    place.kill();
    await place.during(async () => {});
    expect([place.read(), place.read(1)]).toEqual(['', 'one']);
  });
});
