/** A mismatch is reported once, with its kind, offset and generation, and kept with its reason. */
import fs from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText } from '../../../src/job.ts';
import type { MismatchKind } from '../../../src/mismatch.ts';
import { Engine, type EngineOptions, JOB, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);
const LOG = 'a line of the log\n'.repeat(100);

class Place {
  readonly remote = new ModelRemote();
  readonly #directory = temporaryDirectory();
  now = 1_000_000;
  engine = this.start();

  start(options: Partial<EngineOptions> = {}): Engine {
    const engine = new Engine({
      ...{ directory: this.#directory, remote: this.remote, now: () => this.now },
      ...options,
    });
    engine.watch([STDOUT]);
    onTestFinished(() => engine.kill());
    this.engine = engine;
    return engine;
  }

  has(content: string | Buffer): void {
    this.remote.files.set(NAME, Buffer.from(content));
  }

  async polls(count: number): Promise<void> {
    for (let polls = 0; polls < count; polls++, this.now += 6_000) {
      const { errors } = await this.engine.poll();
      expect([...errors.values()]).toEqual([]);
    }
  }

  /** The kinds, offsets and generations that were reported, and those that are kept, with their reasons. */
  get reported() {
    const kept = this.engine.store.liveFiles.ofJob(JOB)[0]?.mismatches ?? [];
    expect(kept.map(({ kind, at, generation }) => [kind, at, generation])).toEqual(this.engine.mismatches);
    return kept.map(({ kind, at, generation, reason }) => [kind, at, generation, reason]);
  }
}

interface Case {
  readonly what: string;
  readonly change: (place: Place, mirror: string) => void;
  readonly expected: readonly [kind: MismatchKind, at: number, generation: number, reason: RegExp] | undefined;
}

const CASES: readonly Case[] = [
  {
    what: 'a remote file that is truncated',
    change: (place) => place.has(LOG.slice(0, 1_700)),
    expected: ['truncated', 1_700, 2, /^it has at most 1700 bytes, the mirror has 1800$/],
  },
  {
    what: 'one that is rewritten',
    change: (place) => place.has('another content\n'.repeat(200)),
    expected: ['rewritten', 1_544, 2, /^its byte 1544 differs from the mirror$/],
  },
  {
    what: 'a mirror of which bytes were changed',
    change: (_, mirror) => fs.writeFileSync(mirror, Buffer.from(LOG).fill('#', 700, 710)),
    expected: ['mirror-damaged', 700, 1, /^another process changed it: requested again from byte 700 on$/],
  },
  {
    what: 'a mirror that was cut',
    change: (_, mirror) => fs.truncateSync(mirror, 500),
    expected: ['mirror-damaged', 500, 1, /^the mirror had 500 of the 1800 bytes that were committed$/],
  },
  {
    what: 'a mirror that was deleted',
    change: (_, mirror) => fs.rmSync(mirror),
    expected: ['mirror-damaged', 0, 1, /^the mirror had 0 of the 1800 bytes/],
  },
  {
    what: 'bytes that another process appended to a mirror',
    change: (_, mirror) => fs.appendFileSync(mirror, 'junk'),
    expected: [
      'mirror-damaged',
      1_800,
      1,
      /^its uncommitted bytes differ from the remote file: requested again from byte 1800 on$/,
    ],
  },
  {
    what: 'a mirror that was replaced',
    change: (_, mirror) => {
      fs.rmSync(mirror);
      fs.writeFileSync(mirror, 'something else');
    },
    expected: ['mirror-damaged', 0, 1, /^another process changed it: requested again from byte 0 on$/],
  },
  {
    what: 'a mirror that was zeroed at its end',
    change: (_, mirror) => fs.writeFileSync(mirror, fs.readFileSync(mirror).fill(0, 900)),
    expected: ['mirror-damaged', 900, 1, /^another process changed it: requested again from byte 900 on$/],
  },
  { what: 'a file that grew', change: (place) => place.has(`${LOG}more`), expected: undefined },
  {
    what: 'a mirror that was touched',
    change: (_, mirror) => fs.utimesSync(mirror, 1, 1),
    expected: undefined,
  },
];

test.each(CASES.flatMap((one) => [false, true].map((restarts) => ({ ...one, restarts }))))(
  '$what is reported once, with its reason; the agent restarts: $restarts',
  async ({ change, expected, restarts }) => {
    const place = new Place();
    place.has(LOG);
    await place.polls(2);
    if (restarts) place.engine.kill();
    change(place, place.engine.mirror(STDOUT));
    if (restarts) place.start();
    await place.polls(6);
    const remote = place.remote.files.get(NAME);
    expect(fs.readFileSync(place.engine.mirror(STDOUT))).toEqual(remote);
    expect(place.reported).toEqual(
      expected === undefined ? [] : [[...expected.slice(0, 3), expect.stringMatching(expected[3])]],
    );
    expect(fs.existsSync(`${place.engine.mirror(STDOUT)}.1`)).toBe(expected?.[2] === 2);
  },
);

test('a server that is found to decode UTF-8 after all is reported', async () => {
  const place = new Place();
  place.engine.store.capabilities.set('text-encoding', 'other');
  place.has('háj\n');
  await place.polls(2);
  expect(place.engine.capabilityChanges).toEqual(['it decodes UTF-8']);
});

test('a generation that a kill interrupts is reported by the next start, with the reason of the first', async () => {
  const place = new Place();
  place.has(LOG);
  await place.polls(2);
  place.engine.kill();
  const engine = place.start({
    checkpoint: (step) => {
      if (step !== 'rotation:cut') return;
      engine.kill();
      throw new JobtailError('aborted', 'it was killed');
    },
  });
  place.has('short');
  await place.polls(1);
  await expect(place.engine.poll()).rejects.toThrow();
  expect(engine.mismatches).toEqual([]);
  place.start();
  await place.polls(3);
  expect(place.reported).toEqual([['truncated', 1_544, 2, 'it has at most 1544 bytes, the mirror has 1800']]);
});

test('of a file that is truncated again and again, the last ten are kept', async () => {
  const place = new Place();
  for (let times = 0; times < 12; times++) {
    place.has(LOG);
    await place.polls(2);
    place.has('');
    await place.polls(3);
  }
  const kept = place.engine.store.liveFiles.ofJob(JOB)[0]?.mismatches ?? [];
  expect(place.engine.mismatches).toHaveLength(12);
  expect(kept.map(({ generation }) => generation)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
});
