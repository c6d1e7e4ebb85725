/** What a service says of each listed name besides: when the file was changed, and that it hands out none of that name. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { ResultsPlace } from './place.ts';

const HOUR_MS = 60 * 60_000;

describe('a file whose listing says when it was changed', () => {
  /** How often it is fetched, over so many hours. */
  async function fetches(place: ResultsPlace, hours: number): Promise<number> {
    const before = place.remote.downloads.length;
    for (let hour = 0; hour < hours; hour++) {
      place.now += HOUR_MS;
      await place.sync();
    }
    return place.remote.downloads.length - before;
  }

  it.each([false, true])(
    'is not fetched in the complete pass, if it was before and is here (shared disk: %s)',
    async (onNetwork) => {
      const place = new ResultsPlace({ onNetwork });
      for (const name of ['/11/a', '/11/cut', '/11/gone', '/11/undated']) place.remote.set(name, name);
      for (const name of ['/11/a', '/11/cut', '/11/gone']) place.remote.stamps.set(name, '2024-05-01T12:00:00');
      // The last looks find nothing to do.
      await fetches(place, 20);
      fs.rmSync(place.path('11', 'gone'));
      fs.truncateSync(place.path('11', 'cut'), 1);
      place.remote.downloads.length = 0;
      await place.sync(true);
      expect(place.remote.downloads.toSorted()).toEqual(['/11/cut', '/11/gone', '/11/undated']);
      for (const name of ['cut', 'gone']) expect(place.read('11', name)).toBe(`/11/${name}`);
    },
  );

  it('is fetched two seconds after the listing, so that no change within the second of its date is missed', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    const waits: number[] = [];
    place.onTimer = (delayMs) => {
      waits.push(delayMs);
      place.remote.set('/11/a', 'same second');
    };
    await place.sync();
    expect(waits).toEqual([2_000]);
    expect(await fetches(place, 20)).toBe(0);
    expect(place.read('11', 'a')).toBe('same second');
  });
});

it('a file that was gone is fetched when it is back, even with the date that it had', async () => {
  const place = new ResultsPlace();
  const listed = async (content: string | undefined) => {
    if (content === undefined) place.remote.files.delete('/11/a');
    else place.remote.set('/11/a', content);
    for (let hour = 0; hour < 5; hour++) {
      place.now += HOUR_MS;
      await place.sync();
    }
    return place.read('11', 'a');
  };
  place.remote.set('/11/other', 'x');
  for (const name of ['/11/a', '/11/other']) place.remote.stamps.set(name, '2024-05-01T12:00:00');
  expect([await listed('first'), await listed(undefined), await listed('other')]).toEqual(['first', 'first', 'other']);
});

describe('a name that the service hands out no file of', () => {
  it('is refused with the reason, and not asked for, until it is handed out', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/č', 'x');
    place.remote.set('/11/a', 'x');
    place.remote.reasons.set('/11/č', 'it is not to be had');
    expect(await place.sync()).toMatchObject({ fetched: 1, refused: 1, failed: 0 });
    expect(place.row('/11/č')).toMatchObject({ state: 'refused', reason: 'it is not to be had' });
    expect(place.remote.downloads).toEqual(['/11/a']);
    place.remote.reasons.clear();
    await place.sync();
    expect(place.row('/11/č')?.state).toBe('synced');
  });

  it('is refused as well if only the request for it shows that', async () => {
    const place = new ResultsPlace();
    place.remote.files.set('/11/č', new JobtailError('usage', 'this file cannot be requested'));
    const asked = place.remote.downloadFile.bind(place.remote);
    place.remote.downloadFile = async (...call) => {
      place.remote.reasons.set('/11/č', 'it is not to be had');
      return await asked(...call);
    };
    expect(await place.sync()).toMatchObject({ fetched: 0, refused: 1, failed: 0 });
    expect(place.row('/11/č')).toMatchObject({ state: 'refused', reason: 'it is not to be had' });
    await place.sync();
    expect(place.remote.downloads).toEqual(['/11/č']);
  });
});
