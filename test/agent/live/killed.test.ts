/** What a kill leaves after the committed offset is compared, and cut if it differs. It starts no generation. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import { Engine, type EngineOptions, JOB, ModelDisk, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);

class Place {
  readonly remote = new ModelRemote();
  readonly disk = new ModelDisk();
  readonly directory = temporaryDirectory();
  now = 1_000_000;
  #step: string | undefined;
  engine: Engine;

  constructor(options: Partial<EngineOptions> = {}) {
    this.engine = this.start(options);
    onTestFinished(() => this.engine.kill());
  }

  start(options: Partial<EngineOptions> = {}): Engine {
    this.#step = undefined;
    this.engine = new Engine({
      directory: this.directory,
      remote: this.remote,
      disk: this.disk,
      now: () => this.now,
      checkpoint: (step) => {
        if (this.#step === undefined || !step.startsWith(this.#step)) return;
        // From now on it takes no step more.
        this.#step = '';
        this.engine.kill();
        throw new JobtailError('aborted', 'it was killed');
      },
      ...options,
    });
    this.engine.watch([STDOUT]);
    return this.engine;
  }

  has(content: string | Buffer): void {
    this.remote.files.set(NAME, Buffer.from(content));
  }

  async polls(count = 3): Promise<void> {
    for (let polls = 0; polls < count; polls++, this.now += 6_000) {
      const { errors } = await this.engine.poll();
      expect([...errors.values()]).toEqual([]);
    }
  }

  /** A poll that is killed when it comes to a step. */
  async killedAt(step: string, isFinal = false): Promise<void> {
    this.#step = step;
    await expect(this.engine.poll(isFinal)).rejects.toThrow();
    expect(this.#step).toBe('');
  }

  /** A poll that is killed before it does something with the mirror. */
  async killedBefore(call: string): Promise<void> {
    this.disk.beforeStep = async (step) => {
      if (step !== call) return;
      this.engine.kill();
      throw new JobtailError('aborted', 'it was killed');
    };
    await expect(this.engine.poll()).rejects.toThrow();
    this.disk.beforeStep = async () => {};
  }

  /** The mirror, or one of its old generations. */
  read(generationsBack = 0): string | undefined {
    const file = this.engine.mirror(STDOUT);
    const at = generationsBack === 0 ? file : `${file}.${generationsBack}`;
    return fs.existsSync(at) ? fs.readFileSync(at, 'latin1') : undefined;
  }

  get row() {
    return this.engine.store.liveFiles.ofJob(JOB)[0];
  }
}

const LONG = 'line of the log\n'.repeat(100);

describe('what a kill left in a mirror', () => {
  test.each([
    ['of the first poll', '', 'first content\n', ['another and longer content\n'], undefined],
    ['of the first poll, of a file that is shorter now', '', 'first content\n', ['new\n'], undefined],
    ['of the first poll, of a file that is empty now', '', 'first content\n', [''], undefined],
    ['of a later poll', LONG, `${LONG}more`, [`other ${LONG} and more`], LONG],
    ['of a file rewritten as far as it was committed', LONG, `${LONG}more`, [`${LONG}else and more`], undefined],
    ['of a file truncated to what was committed', LONG, `${LONG}more`, [LONG], undefined],
    ['of a later poll, of a file that was rewritten twice', LONG, `${LONG}more`, ['second', 'third and last'], LONG],
  ])('is cut if the file was rewritten, and what was committed is kept: %s', async (...one) => {
    const [, committed, written, rewritten, kept] = one;
    const place = new Place();
    place.has(committed);
    await place.polls();
    place.has(written);
    await place.killedAt('append:written');
    expect(place.read()).toBe(written);

    place.start();
    expect(place.row).toMatchObject({ position: committed.length, generation: 1 });
    for (const content of rewritten) {
      place.has(content);
      await place.polls(1);
    }
    await place.polls();
    expect([place.read(), place.read(1), place.read(2)]).toEqual([rewritten.at(-1), kept, undefined]);
    expect(place.row).toMatchObject({ generation: kept === undefined ? 1 : 2 });
  });

  test('is cut, and what was committed is kept, however often it is killed before that is done', async () => {
    const place = new Place();
    place.has(LONG);
    await place.polls();
    place.has(`${LONG}more`);
    await place.killedAt('append:written');
    place.has('another and longer content\n');
    // A new generation takes two polls; one that was begun goes on with the first.
    const kills = [
      ['rotation:begin', 2],
      ['rotation:copied', 1],
      ['rotation:cut', 0],
    ] as const;
    for (const [step, pollsBefore] of kills) {
      place.start();
      await place.polls(pollsBefore);
      await place.killedAt(step);
    }
    place.start();
    await place.polls();
    expect([place.read(), place.read(1), place.read(2)]).toEqual(['another and longer content\n', LONG, undefined]);
  });

  test('starts no generation if the file only went on', async () => {
    const place = new Place();
    place.has(LONG);
    await place.polls();
    place.has(`${LONG}more`);
    await place.killedAt('append:written');
    place.start();
    place.has(`${LONG}more and more`);
    const { textBytes } = place.remote;
    await place.polls(1);
    expect([place.read(), place.read(1)]).toEqual([`${LONG}more and more`, undefined]);
    // No more than the overlap and the tail is asked for again.
    expect(place.remote.textBytes - textBytes).toBeLessThan(300);
    expect(place.row).toMatchObject({ generation: 1, position: LONG.length + 13 });
  });
});

describe('without a kill', () => {
  test('what fitted on a full disk is promised, and kept if the file is rewritten', async () => {
    const place = new Place();
    place.disk.room = 8;
    place.has('too much content\n');
    expect((await place.engine.poll()).errors.get(NAME)).toMatchObject({ code: 'disk-full' });
    expect(place.read()).toBe('too much');
    expect(place.row).toMatchObject({ position: 8 });
    place.disk.room = Number.POSITIVE_INFINITY;
    place.has('another content\n');
    await place.polls();
    expect([place.read(), place.read(1)]).toEqual(['another content\n', 'too much']);
  });
});

describe('what may be damaged is taken back', () => {
  test('after a power loss, also if the next start is killed before it saw that', async () => {
    const place = new Place();
    place.has(LONG);
    await place.polls();
    place.has(`${LONG}more`);
    await place.killedAt('append:written');
    fs.writeFileSync(place.engine.mirror(STDOUT), `${LONG}\0\0\0\0`);
    for (let starts = 0; starts < 3; starts++) {
      place.start().kill();
      place.start();
      place.remote.failures.push(new JobtailError('unavailable', 'it is down'));
      await expect(place.engine.poll()).rejects.toThrow('it is down');
      place.engine.kill();
    }
    place.start();
    await place.polls();
    expect([place.read(), place.read(1)]).toEqual([`${LONG}more`, undefined]);
  });

  test('if its flush failed, whatever the system still shows of it', async () => {
    const place = new Place();
    place.has('safe');
    await place.polls();
    place.has('safe and lost');
    place.disk.flushFailures = 1;
    await place.killedBefore('truncate');
    expect(place.read()).toBe('safe and lost');
    place.start();
    place.has('another');
    await place.polls();
    expect([place.read(), place.read(1)]).toEqual(['another', 'safe']);
  });
});

describe('bytes that were committed are requested again as far as the overlap only', () => {
  /** Characters beyond ASCII are looked for so far before the overlap, and an offset is moved to the beginning of one. */
  const MAX_AGAIN_BYTES = 256 + 1_024 + 68;
  const COMMITTED = 'a line of the log, which is long\n'.repeat(1_000);
  const TAIL = 'and one more\n'.repeat(100);

  /** Copies the state, grows and commits more, and is killed at `step` of the poll after that. */
  async function killed(step: string): Promise<Place> {
    const place = new Place();
    place.has(COMMITTED);
    await place.polls();
    fs.cpSync(path.join(place.directory, 'state'), path.join(place.directory, 'older'), { recursive: true });
    place.has(COMMITTED + TAIL);
    await place.polls(1);
    place.has(COMMITTED + TAIL + TAIL);
    await place.killedAt(step);
    return place;
  }

  /** Another process writes to the state, or to the mirror's directory, before the next start. */
  const BEFORE_START: Record<string, (place: Place) => void> = {
    'a kill': () => {},
    'an older copy of the state': ({ directory }) => {
      fs.rmSync(path.join(directory, 'state'), { recursive: true });
      fs.renameSync(path.join(directory, 'older'), path.join(directory, 'state'));
    },
    'a copy of the mirror': ({ engine }) => {
      const mirror = engine.mirror(STDOUT);
      fs.copyFileSync(mirror, `${mirror}.copy`);
      fs.renameSync(`${mirror}.copy`, mirror);
    },
    'a mirror that was touched': ({ engine }) => {
      fs.utimesSync(engine.mirror(STDOUT), 1, 1);
    },
  };

  const KILLS = ['append:written', 'flush:begin', 'flush:end'];

  test.each(Object.keys(BEFORE_START).flatMap((what) => KILLS.map((kill) => [what, kill] as const)))(
    'after %s, killed at %s',
    async (what, step) => {
      const place = await killed(step);
      BEFORE_START[what]?.(place);
      place.start();
      const { length } = COMMITTED + TAIL + TAIL;
      const uncommitted = length - (place.row?.position ?? 0);
      const { textBytes, rawBytes } = place.remote;
      await place.polls(1);
      expect(place.remote.textBytes - textBytes).toBeLessThanOrEqual(MAX_AGAIN_BYTES + uncommitted);
      expect(place.remote.rawBytes).toBe(rawBytes);
      expect([place.read(), place.read(1)]).toEqual([COMMITTED + TAIL + TAIL, undefined]);

      // Once that is committed, the mirror need not be read again.
      expect(place.row).toMatchObject({ position: length, inode: expect.any(String) });
      const { ino, mtimeNs } = fs.statSync(place.engine.mirror(STDOUT), { bigint: true });
      expect(place.row).toMatchObject({ inode: String(ino), modifiedNs: String(mtimeNs) });
    },
  );
});
