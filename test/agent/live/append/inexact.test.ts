import fs from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maskRegions, overlaps } from '../../../../src/agent/live/mirror/inexact-regions.ts';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText } from '../../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { numRuns } from '../../../support/property-runs.ts';
import { removedDirectory } from '../../../support/temp-directory.ts';
import { ALL_ATOMS } from '../model/content.ts';

const NAME = keyText(STDOUT);

/** Follows `bytes` to their end where there is nothing but text; then the raw bytes can be had. */
async function followInexact(bytes: Buffer, decoding: ModelRemote['decoding']) {
  return removedDirectory(async (directory) => {
    const remote = new ModelRemote();
    remote.rawAccess = false;
    remote.decoding = decoding;
    remote.files.set(NAME, bytes);
    let now = 0;
    const engine = new Engine({ directory, remote, now: () => now });
    engine.watch([STDOUT]);
    engine.store.capabilities.set('text-encoding', 'utf-8');
    const poll = async (times: number) => {
      for (let polls = 0; polls < times; polls++) {
        now += 700_000;
        await engine.poll(true);
      }
      const row = engine.store.liveFiles.ofJob(JOB)[0];
      return { mirror: fs.readFileSync(engine.mirror(STDOUT)), regions: row?.inexact ?? [], row };
    };
    const inexact = await poll(8);
    remote.rawAccess = true;
    const exact = await poll(2);
    engine.kill();
    return { inexact, exact };
  });
}

describe('undecodable bytes without raw bytes', () => {
  const content = fc
    .array(fc.tuple(fc.constantFrom(...ALL_ATOMS), fc.integer({ min: 1, max: 9 })), { minLength: 1, maxLength: 12 })
    .map((runs) => Buffer.concat(runs.flatMap(([atom, times]) => Array<Buffer>(times).fill(atom))));

  /** Whether all is there at its width, and becomes exact as soon as raw bytes can be had. */
  async function keepsItsWidth(bytes: Buffer, decoding: ModelRemote['decoding']): Promise<void> {
    const { inexact, exact } = await followInexact(bytes, decoding);
    // What a mark at the requested offset does to the text may fit nothing, and of several marks one may be missing: that
    // is reported, and no wrong byte is mirrored.
    const mayLackMark = decoding.swallowBom === true || decoding.stream === true || bytes.includes('\ufeff\ufeff');
    const isStuck = mayLackMark && inexact.row?.error?.code === 'stuck';
    if (!isStuck) expect(inexact.mirror.length).toBe(bytes.length);
    const standIns = [...inexact.mirror].map((byte, index) =>
      inexact.regions.some((region) => overlaps(region, index, index + 1)) ? '?'.charCodeAt(0) : byte,
    );
    expect(Buffer.from(standIns)).toEqual(inexact.mirror);
    const right = maskRegions(bytes.subarray(0, inexact.mirror.length), 0, inexact.regions);
    expect(maskRegions(inexact.mirror, 0, inexact.regions)).toEqual(right);
    expect(inexact.row?.generation).toBe(1);
    expect(exact).toMatchObject({ mirror: bytes, regions: [] });
    expect(exact.row?.generation).toBe(1);
  }

  test('keep their width, so that nothing drifts; they are known, and mended as soon as raw bytes can be had', async () => {
    await fc.assert(
      fc.asyncProperty(content, fc.boolean(), async (start, swallowBom) => {
        await keepsItsWidth(Buffer.concat([Buffer.from('A'), start, Buffer.from('the end')]), { swallowBom });
      }),
      numRuns(60),
    );
  });

  test('keep their width before bytes that a mark of UTF-16 among them turns into other text', async () => {
    const end = fc.integer({ min: 2, max: 9 }).map((bytes) => Buffer.alloc(bytes));
    const short = Buffer.from('efbbefbb', 'hex');
    const markBefore = Buffer.from('f09f98efbbbf', 'hex');
    await fc.assert(
      fc.asyncProperty(content, end, async (start, nul) => {
        const mark = Buffer.from([0xff, 0xfe]);
        await keepsItsWidth(Buffer.concat([Buffer.from('A'), start, mark, nul]), { stream: true });
      }),
      {
        ...numRuns(60),
        examples: [
          ...[2, 3, 9].map((bytes): [Buffer, Buffer] => [short, Buffer.alloc(bytes)]),
          [markBefore, Buffer.alloc(2)],
        ],
      },
    );
  });

  test('keep their width wherever the edge of a block falls that is counted from where the last ones end', async () => {
    const unit = fc.constantFrom('é', '€', '𝄞', '\ufffd', 'ff', 'e282', 'f09f98');
    const repeatedUnit = unit.map((text) => Buffer.from(text, /^[0-9a-f]+$/.test(text) ? 'hex' : 'utf8'));
    const invalid = fc.array(fc.constantFrom(...ALL_ATOMS), { minLength: 1, maxLength: 3 }).map(Buffer.concat);
    await fc.assert(
      fc.asyncProperty(
        invalid,
        repeatedUnit,
        fc.integer({ min: 1006, max: 1030 }),
        fc.array(invalid, { maxLength: 4 }),
        fc.constantFrom<ModelRemote['decoding'][]>({}, { swallowBom: true }, { stream: true }),
        async (start, repeated, length, behind, decoding) => {
          const many = Buffer.alloc(length - (length % repeated.length), repeated);
          const letter = Buffer.from('A');
          const end = behind.flatMap((bytes) => [bytes, letter]);
          await keepsItsWidth(Buffer.concat([letter, start, many, ...end, Buffer.from('the end')]), decoding);
        },
      ),
      {
        ...numRuns(60),
        examples: [
          [Buffer.from('b9f09d849e', 'hex'), Buffer.from('𝄞'), 1020, [Buffer.from([0xfe])], {}],
          [Buffer.from('1b5b333b317eefbfefbf', 'hex'), Buffer.from('\ufffd'), 1017, [Buffer.from('𝄞0')], {}],
        ],
      },
    );
  });

  test('of a service that fails for a while stay open', async () => {
    await removedDirectory(async (directory) => {
      const remote = new ModelRemote();
      remote.files.set(NAME, Buffer.from('a\xffb', 'latin1'));
      const engine = new Engine({ directory, remote, now: () => 0 });
      engine.watch([STDOUT]);
      engine.store.capabilities.set('text-encoding', 'utf-8');
      remote.downloadFile = async () => {
        throw new JobtailError('timeout', 'no answer');
      };
      await engine.poll(true);
      expect(fs.readFileSync(engine.mirror(STDOUT), 'utf8')).toBe('a');
      expect(engine.store.liveFiles.ofJob(JOB)[0]?.inexact).toEqual([]);
      engine.kill();
    });
  });
});

test.each(['ff', 'e9e9', 'e9e9e9', 'fefefe'])(
  'bytes %s that stand as `?` at the start of a file stop no text after them',
  async (hex) => {
    await removedDirectory(async (directory) => {
      const remote = new ModelRemote();
      remote.rawAccess = false;
      let now = 0;
      const engine = new Engine({ directory, remote, now: () => now });
      engine.watch([STDOUT]);
      engine.store.capabilities.set('text-encoding', 'utf-8');
      const start = Buffer.from(hex, 'hex');
      for (const text of ['', 'more\n', 'more\nand more\n']) {
        remote.files.set(NAME, Buffer.concat([start, Buffer.from(text)]));
        for (let polls = 0; polls < 4; polls++, now += 700_000) await engine.poll();
      }
      expect(fs.readFileSync(engine.mirror(STDOUT), 'utf8')).toBe(`${'?'.repeat(start.length)}more\nand more\n`);
      engine.kill();
    });
  },
);

test('a torn tail behind substituted bytes is mended although raw bytes are refused', async () => {
  await removedDirectory(async (directory) => {
    const remote = new ModelRemote();
    remote.rawAccess = false;
    remote.files.set(NAME, Buffer.from('A\ufffd0'));
    let now = 0;
    const started = () => {
      const engine = new Engine({ directory, remote, now: () => now });
      engine.watch([STDOUT]);
      return engine;
    };
    const poll = async (engine: Engine) => {
      for (let polls = 0; polls < 8; polls++, now += 12_000) await engine.poll();
      engine.kill();
      return fs.readFileSync(engine.mirror(STDOUT), 'latin1');
    };
    const engine = started();
    expect(await poll(engine)).toBe('A???0');
    fs.appendFileSync(engine.mirror(STDOUT), '0 junk \xff', 'latin1');
    remote.files.set(NAME, Buffer.from('A\ufffd0A'));
    expect(await poll(started())).toBe('A???0A');
  });
});

test('a mark that the server strips behind substituted bytes is an error, not the end of the file', async () => {
  await removedDirectory(async (directory) => {
    const remote = new ModelRemote();
    remote.rawAccess = false;
    remote.decoding = { swallowBom: true };
    remote.files.set(NAME, Buffer.from('A\ufffd\ufffd\ufeff\ufffd'));
    let now = 0;
    const engine = new Engine({ directory, remote, now: () => now });
    engine.watch([STDOUT]);
    for (let polls = 0; polls < 12; polls++, now += 12_000) await engine.poll();
    const { errors } = await engine.poll();
    expect(errors.get(NAME)?.code).toBe('stuck');
    engine.kill();
  });
});
