/** What a service says of each listed name besides: when the file was changed, and that it hands out none of that name. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
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

  it('is fetched twice, and then no more until that changes', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    expect(await fetches(place, 20)).toBe(2);
    place.remote.set('/11/a', 'second');
    place.remote.stamps.set('/11/a', '2024-05-01T13:00:00');
    expect(await fetches(place, 20)).toBe(2);
    expect(place.read('11', 'a')).toBe('second');
  });

  it('is fetched in the complete pass, whatever it says', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    await fetches(place, 5);
    place.remote.set('/11/a', 'rewritten within the second');
    expect(await fetches(place, 5)).toBe(0);
    await place.sync(true);
    expect(place.read('11', 'a')).toBe('rewritten within the second');
  });

  it('is fetched again if it was rewritten in the moment of its first fetch', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    await place.sync();
    place.remote.set('/11/a', 'same second');
    expect(await fetches(place, 20)).toBe(2);
    expect(place.read('11', 'a')).toBe('same second');
  });

  it('is fetched by no later process until that changes, if it was fetched twice', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    expect(await fetches(place, 1)).toBe(1);
    place.restarted();
    expect(await fetches(place, 5)).toBe(1);
    place.restarted();
    expect(await fetches(place, 5)).toBe(0);
    place.remote.set('/11/a', 'second');
    place.remote.stamps.set('/11/a', '2024-05-01T13:00:00');
    expect(await fetches(place, 1)).toBe(1);
    expect(place.read('11', 'a')).toBe('second');
  });

  it('is fetched by the next process if what came of it is not there any more', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    await fetches(place, 3);
    fs.rmSync(place.path('11', 'a'));
    place.restarted();
    expect(await fetches(place, 3)).toBe(1);
    expect(place.read('11', 'a')).toBe('first');
  });

  it('is not spared by two fetches within one second', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    await place.sync();
    place.now += 500;
    await place.sync(true);
    place.remote.set('/11/a', 'the same second');
    expect(await fetches(place, 5)).toBe(2);
    expect(place.read('11', 'a')).toBe('the same second');
  });

  it('is fetched at its intervals when the listing says it no longer', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'first');
    place.remote.stamps.set('/11/a', '2024-05-01T12:00:00');
    await fetches(place, 5);
    place.remote.stamps.clear();
    expect(await fetches(place, 5)).toBe(5);
  });
});

describe('a name that the service hands out no file of', () => {
  it('is refused with the reason, and not asked for', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/č', 'x');
    place.remote.set('/11/a', 'x');
    place.remote.reasons.set('/11/č', 'it is not to be had');
    expect(await place.sync()).toMatchObject({ fetched: 1, refused: 1, failed: 0 });
    expect(place.row('/11/č')).toMatchObject({ state: 'refused', reason: 'it is not to be had' });
    expect(place.remote.downloads).toEqual(['/11/a']);
  });

  it('comes once it is handed out', async () => {
    const place = new ResultsPlace();
    place.remote.set('/11/a', 'x');
    place.remote.reasons.set('/11/a', 'too long');
    await place.sync();
    place.remote.reasons.clear();
    await place.sync();
    expect(place.row('/11/a')?.state).toBe('synced');
  });
});
