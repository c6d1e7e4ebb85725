/** One live file over a real mirror, step by step: what is written, flushed and committed, and what a start finds. */
import fs from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import type { LiveFile } from '../../../../src/agent/live/mirror/live-file.ts';
import { Mirror } from '../../../../src/agent/live/mirror/mirror.ts';
import { integrityOf } from '../../../../src/agent/live/mirror/open-live-file.ts';
import type { Ownership } from '../../../../src/agent/ownership.ts';
import { JobtailError } from '../../../../src/errors.ts';
import type { LiveFileRow } from '../../../../src/store/rows.ts';
import { ModelDisk } from '../../../support/engine.ts';
import { expectCases } from '../../../support/errors.ts';
import { LivePlace, NEW_ROW, REWRITTEN } from '../../../support/live-place.ts';

const MIB = 1024 * 1024;
const sizeOf = (bytes: number) => (bytes > 0 && bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes}`);

/** An agent of a fleet. */
class Owner implements Ownership {
  /** The row that the next owner would go on from. */
  known: LiveFileRow | undefined;
  isOwner = true;
  readonly #mark: string;

  constructor(mark: string) {
    this.#mark = mark;
  }

  owns = () => this.isOwner;

  copyMark = () => this.#mark;

  requireLease(): void {
    if (!this.isOwner) throw new JobtailError('superseded', 'it is another’s');
  }

  async fence(row: LiveFileRow): Promise<void> {
    this.requireLease();
    this.known = row;
  }
}

class FileStory {
  readonly #place = new LivePlace();
  readonly #disk = new ModelDisk();
  #owner: Owner | undefined;
  #file: LiveFile | undefined;
  #keep = 5;
  #events: string[] = [];
  #before = '';
  #reported = '';
  /** The step at which something happens. */
  #at = '';
  #happens: () => void = () => {};

  constructor() {
    const onStep = (step: string) => {
      const { size = 0 } = fs.statSync(this.#place.path, { throwIfNoEntry: false }) ?? {};
      const { rotation, generation } = this.#owner?.known ?? {};
      const reported = rotation === undefined ? '' : ` (reported ${rotation} ${generation})`;
      if (reported !== this.#reported) this.#events.push(reported.trim());
      this.#reported = reported;
      const copies = this.#place.files().filter((name) => name.includes('keeping'));
      const more = { commit: ` at ${sizeOf(size)}`, 'rotation:copied': ` to ${copies.join(' ')}` };
      this.#events.push(`${step}${more[step as 'commit'] ?? ''}`);
      if (step === this.#at) this.#happens();
    };
    this.#place.onStep = onStep;
    this.#disk.beforeStep = async (step) => {
      if (step === 'truncate' || step === 'datasync') onStep(step);
    };
  }

  get #options() {
    const openFile = this.#disk.open.bind(this.#disk);
    return { openFile, keepGenerations: this.#keep, ...(this.#owner && { ownership: this.#owner }) };
  }

  /** The mirror with all beside it, and what is committed of it. */
  get #state(): string {
    const { position, generation, checksum, rotation, copyMark, inode, modifiedNs, mismatches, ...more } =
      this.#place.committed;
    const stat = fs.statSync(this.#place.path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return 'nothing';
    const found = this.#place.files().map((name) => {
      const bytes = fs.readFileSync(path.join(path.dirname(this.#place.path), name));
      return `${name.replace('stdout.log', 'mirror')} ${bytes.length > 99 ? sizeOf(bytes.length) : `"${bytes}"`}`;
    });
    const isRight = checksum === crc32(fs.readFileSync(this.#place.path).subarray(0, position));
    const notes = {
      rotation,
      copyMark,
      'another inode': inode !== null && inode !== String(stat.ino),
      'another time': inode !== null && modifiedNs !== String(stat.mtimeNs),
      'no checksum': checksum === null && position > 0,
      'wrong checksum': checksum !== null && rotation === null && !isRight,
      ...{ verified: more.verified, unverified: more.unverified, early: more.early, grown: more.grownAt === 0 },
      ...{ path: more.relativePath, listed: more.listedName },
      mismatches: mismatches.map(({ kind, at, generation }) => `${kind} at ${at} of ${generation}`).join(' and '),
    };
    const known = Object.entries(notes).filter(([, value]) => value !== null && value !== false && value !== '');
    const all = known.map(([name, value]) => (value === true ? name : `${name} ${value}`));
    return [...found, `committed ${sizeOf(position)} of generation ${generation}`, ...all].join(', ');
  }

  async #open(): Promise<LiveFile> {
    return await this.#place.open(this.#options);
  }

  async do(step: string): Promise<string[]> {
    const place = this.#place;
    const [word = '', first = ''] = step.split(' ');
    const text = step.slice(word.length + 1);
    const during = (work: (file: LiveFile) => Promise<unknown>) => place.during(work, this.#options);
    const bytes = () => Buffer.from(JSON.parse(text) as string);
    const add = async (file?: LiveFile) => {
      const count = Number(/^MIB\*(\d+)$/.exec(text)?.[1] ?? 0);
      for (let at = 0; at < count; at++) await file?.append(Buffer.alloc(MIB, 'x'));
      if (count === 0) await file?.append(bytes());
    };
    const steps: Readonly<Record<string, () => unknown>> = {
      append: () => during(add),
      rotate: () => this.#file?.startGeneration(REWRITTEN) ?? during((file) => file.startGeneration(REWRITTEN)),
      // Without a line of what each does.
      rotates: async () => {
        for (let times = 0; times < Number(first); times++) await during((file) => file.startGeneration(REWRITTEN));
        this.#events = [];
        return 'rotated';
      },
      find: () => during(async ({ integrity }) => integrity),
      note: () =>
        during(async (file) => {
          file.note(JSON.parse(text) as object);
          // Nothing was appended.
          await file.commitAppended();
        }),
      // One that stays open.
      open: async () => {
        this.#file = await this.#open();
        return this.#file.integrity;
      },
      add: () => add(this.#file),
      cut: () => this.#file?.cut(Number(first), 'for the test'),
      compared: () => this.#file?.markCompared('text'),
      commit: () => this.#file?.commitAppended(),
      flush: async () => `position ${(await this.#file?.flushToRow())?.position}`,
      length: async () => `${this.#file?.appended} appended, reads "${await this.#file?.read(0, 100)}"`,
      close: async () => {
        if (this.#file?.changed) place.commit(await this.#file.flushToRow());
        await this.#file?.close();
      },
      leave: () => this.#file?.close(),
      // What others do to the mirror, and the disk.
      tail: () => fs.appendFileSync(place.path, bytes()),
      truncated: () => fs.truncateSync(place.path, Number(first)),
      torn: () => fs.truncateSync(`${place.path}.keeping`, Number(first)),
      row: () => place.commits.push({ ...place.committed, ...(JSON.parse(text) as object) }),
      tick: () => {
        const { mtimeNs } = fs.statSync(place.path, { bigint: true });
        place.commits.push({ ...place.committed, modifiedNs: String(mtimeNs) });
      },
      flushes: () => Object.assign(this.#disk, { flushFailures: 1 }),
      fails: () => {
        this.#at = first;
        this.#happens = () => {
          throw new Error('it fails');
        };
      },
      keep: () => (this.#keep = Number(first)),
      owner: () => (this.#owner = new Owner(first)),
      lost: () => {
        this.#at = first;
        this.#happens = () => Object.assign(this.#owner ?? {}, { isOwner: false });
        if (first === 'now') this.#happens();
      },
      // The next owner has what it was reported, not what the one before noted for itself.
      next: () => {
        place.commits.push(
          this.#owner?.known ?? place.commits.findLast(({ rotation }) => rotation === null) ?? NEW_ROW,
        );
        this.#owner = new Owner(first);
        this.#at = '';
      },
    };
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    this.#events = [];
    const end = await Promise.resolve()
      .then(steps[word])
      .catch((thrown: Error) => `thrown ${thrown instanceof JobtailError ? thrown.code : thrown.message}`);
    return this.#lines(step, typeof end === 'string' ? end : '');
  }

  /** Nothing of a step that only prepares. */
  #lines(step: string, end: string): string[] {
    const events = this.#events.filter((event) => !/^(append:written|flush:)/.test(event));
    const open = this.#disk.openHandles === 0 ? '' : '; open';
    const shown = [end, ...events].filter((each) => each !== '').join(', ');
    const state = this.#state;
    if (shown === '' && (state === this.#before || this.#file === undefined)) return [];
    const changed = state === this.#before ? '' : ` -> ${state}`;
    this.#before = state;
    return [`${step}: ${shown}${open}${changed}`];
  }
}

it('each step of a live file leads to what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'live-file.txt'), async (written) => {
    const story = new FileStory();
    const result: string[] = [];
    for (const step of written.split('; ')) result.push(...(await story.do(step)));
    return result;
  });
});

test('what is appended is flushed in the background from 8 MiB on, and the mirror is closed after that', async () => {
  const [place, disk] = [new LivePlace(), new ModelDisk()];
  let release = () => {};
  let flushes = 0;
  disk.beforeStep = async (step) => {
    if (step !== 'datasync') return;
    flushes += 1;
    await new Promise<void>((resolve) => (release = resolve));
  };
  const file = await place.open({ openFile: disk.open.bind(disk) });
  await file.append(Buffer.alloc(8 * 1024 * 1024 - 1, 'x'));
  await new Promise((resolve) => setImmediate(resolve));
  expect(flushes).toBe(0);
  await file.append(Buffer.from('x'));
  const closed = file.close();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([flushes, disk.openHandles]).toEqual([1, 1]);
  release();
  await closed;
  expect(disk.openHandles).toBe(0);
});

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

test.each(KILLS)(
  'a rotation killed at any step, of %i kept, and again at %i, loses nothing',
  async (keepGenerations, again) => {
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
  },
);

describe('a mirror on a file system without steady inodes or times', () => {
  it('is not read as a whole at each poll, once its checksum was right several times; that is reported once', async () => {
    let now = 0;
    const place = await LivePlace.of('promised', () => now);
    const checksum = vi.spyOn(Mirror.prototype, 'checksum');
    onTestFinished(() => checksum.mockRestore());
    const onUnsteady = vi.fn();
    const poll = (at: number) => {
      fs.utimesSync(place.path, at, at);
      return place.during(async ({ integrity }) => integrity, { onUnsteady });
    };
    // Of all bytes: nothing that is known of the beginning is passed.
    const whole = () => checksum.mock.calls.filter(({ length }) => length === 1).length;
    for (let at = 1; at <= 50; at++, now += 11_900) expect(await poll(at)).toBe('intact');
    expect(whole()).toBe(5);
    expect(onUnsteady).toHaveBeenCalledOnce();
    // What another process changes is found by the next look at all bytes.
    fs.writeFileSync(place.path, 'PROMISED');
    now += 600_000;
    // One that was wrong is not taken for right in the time after it.
    for (const reads of [6, 7]) expect([await poll(60), whole()]).toEqual(['modified', reads]);
  });

  it('is told by looks in a row: one that finds it as it was left counts from the beginning', async () => {
    const place = await LivePlace.of('promised');
    const onUnsteady = vi.fn();
    const look = () => place.during(async ({ integrity }) => integrity, { onUnsteady });
    for (let at = 1; at <= 12; at++) {
      fs.utimesSync(place.path, at, at);
      expect(await look()).toBe('intact');
      if (at % 4 === 0) expect(await look()).toBe('intact');
    }
    fs.writeFileSync(place.path, 'PROMISED');
    expect([await look(), onUnsteady.mock.calls]).toEqual(['modified', []]);
  });
});

describe('a mirror that is opened', () => {
  it('is intact without committed bytes, whatever a kill left in it', async () => {
    const place = new LivePlace();
    for (let polls = 0; polls < 2; polls++) await place.during(async () => {});
    expect(place.commits).toHaveLength(1);
    fs.appendFileSync(place.path, 'tail');
    expect(await place.during(async ({ integrity }) => integrity)).toBe('intact');
  });

  const row = { ...NEW_ROW, position: 10, checksum: 5, inode: '7', modifiedNs: '100' };
  const look = { length: 10, inode: '7', modifiedNs: '100' };

  test.each([
    ['as it was left', row, look, 'intact'],
    ['longer, as a kill leaves it', row, { ...look, length: 12, modifiedNs: '200' }, 'by its bytes'],
    ['written, with the same length', row, { ...look, modifiedNs: '200' }, 'by its bytes'],
    ['another file', row, { ...look, inode: '8' }, 'by its bytes'],
    ['shorter', row, { ...look, length: 9 }, 'modified'],
    ['written, without a checksum', { ...row, checksum: null }, { ...look, modifiedNs: '200' }, 'unknown'],
    ['cut, and then killed', { ...row, modifiedNs: null }, look, 'modified'],
    ['new', NEW_ROW, { ...look, length: 0 }, 'intact'],
    ['there, though nothing is known of it', NEW_ROW, look, 'unknown'],
  ] as const)('%s', async (_, known, found, integrity) => {
    const byBytes = (hasThem: boolean) => integrityOf(known, found, async () => hasThem);
    const expected = integrity === 'by its bytes' ? ['intact', 'modified'] : [integrity, integrity];
    expect([await byBytes(true), await byBytes(false)]).toEqual(expected);
  });
});
