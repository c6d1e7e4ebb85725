/** Mirrors of a job that another agent may own by now, or own next. */
import { describe, expect, it } from 'vitest';
import type { LiveFile } from '../../../../src/agent/live/mirror/live-file.ts';
import type { Ownership } from '../../../../src/agent/ownership.ts';
import { JobtailError } from '../../../../src/errors.ts';
import type { LiveFileRow } from '../../../../src/store/rows.ts';
import { LivePlace, REWRITTEN } from '../../../support/live-place.ts';

class Owner implements Ownership {
  /** What the next owner would go on from. */
  readonly known: LiveFileRow[] = [];
  isOwner = true;
  readonly #mark: string;

  constructor(mark: string) {
    this.#mark = mark;
  }

  owns(): boolean {
    return this.isOwner;
  }

  requireLease(): void {
    if (!this.isOwner) throw new JobtailError('superseded', 'it is another’s');
  }

  async fence(row: LiveFileRow): Promise<void> {
    this.requireLease();
    this.known.push(row);
  }

  copyMark(): string {
    return this.#mark;
  }
}

describe('a new generation', () => {
  it('takes no step before the next owner would know of it', async () => {
    const [place, ownership] = [await LivePlace.of('one'), new Owner('1')];
    const known: Record<string, unknown> = {};
    place.onStep = (step) => {
      const { rotation = 'nothing', generation = 1 } = ownership.known.at(-1) ?? {};
      known[step] = [rotation, generation];
    };
    await place.during((file) => file.startGeneration(REWRITTEN), { ownership });
    expect(known).toMatchObject({
      'rotation:begin': ['nothing', 1],
      'rotation:copy': ['copying', 1],
      'rotation:number': ['copied', 1],
      'rotation:cut': ['copied', 1],
    });
    expect(ownership.known.at(-1)).toMatchObject({ rotation: null, generation: 2, position: 0 });
    expect([place.read(), place.read(1)]).toEqual(['', 'one']);
  });

  it('renames no generation after its lease is lost between two renames', async () => {
    const [place, ownership] = [await LivePlace.of('one'), new Owner('1')];
    await place.during((file) => file.startGeneration(REWRITTEN), { ownership });
    await place.write('two', { ownership });
    place.onStep = (step) => {
      if (step === 'rotation:moved') ownership.isOwner = false;
    };
    const lost = place.during((file) => file.startGeneration(REWRITTEN), { ownership });
    await expect(lost).rejects.toMatchObject({ code: 'superseded' });
    expect([place.read(), place.read(1), place.read(2)]).toEqual(['two', undefined, 'one']);
  });

  it.each([
    ['rotation:begin', null],
    ['rotation:copy', 'copying'],
    ['rotation:copied', 'copying'],
    ['rotation:number', 'copied'],
    ['rotation:cut', 'copied'],
  ])('that was lost at %s goes on with the next owner, and the one before touches nothing', async (at, rotation) => {
    const [place, before] = [await LivePlace.of('one'), new Owner('1')];
    const first = place.committed;
    place.onStep = (step) => {
      if (step === at) before.isOwner = false;
    };
    const lost = await place
      .during((file) => file.startGeneration(REWRITTEN), { ownership: before })
      .catch((error) => error);
    expect(lost).toMatchObject({ code: 'superseded' });
    expect(place.read()).toBe('one');
    place.kill();

    // The next owner has what it was reported, not what the one before noted for itself.
    const row = before.known.at(-1) ?? first;
    expect(row.rotation).toBe(rotation);
    place.commits.push(row);
    const next = new Owner('2');
    const copies: string[] = [];
    place.onStep = (step) => {
      if (step === 'rotation:copied') copies.push(...place.files().filter((name) => name.includes('keeping')));
    };
    await place.during(
      async (file) => {
        if (rotation === null) await file.startGeneration(REWRITTEN);
      },
      { ownership: next },
    );
    expect([place.read(), place.read(1), place.read(2)]).toEqual(['', 'one', undefined]);
    expect(copies).toEqual(rotation === 'copied' ? [] : ['stdout.log.keeping-2']);
    expect(place.committed.copyMark).toBeNull();
    expect(place.files().filter((name) => name.includes('keeping'))).toEqual([]);
  });
});

it.each(['append', 'cut'])('a mirror has no %s by one who does not own it any more', async (does) => {
  const [place, ownership] = [await LivePlace.of('one'), new Owner('1')];
  const work = async (file: LiveFile) => {
    ownership.isOwner = false;
    await (does === 'append' ? file.append(Buffer.from(' two')) : file.cut(1, 'for the test'));
  };
  await expect(place.during(work, { ownership })).rejects.toMatchObject({ code: 'superseded' });
  expect(place.read()).toBe('one');
});
