import { execFileSync } from 'node:child_process';
import { readdirSync, statfsSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { ResponseTexts, readParts } from '../../../src/remote/content/response-texts.ts';
import type { Value } from '../../../src/remote/content/values.ts';
import { SmallDisk } from '../../support/e2e-mount.ts';
import { numRuns } from '../../support/property-runs.ts';
import { directoryOfFile, openFilesIn } from '../../support/temp-directory.ts';
import { spillTo, TASK } from '../../support/wire-remote.ts';

const directory = directoryOfFile();

type Piece = Uint8Array | string | number;

/** Texts of a response, of which so many bytes stay in memory; what is left of them at the end of the test is removed. */
function hold(memoryBytes: number, { at = directory, enoughBytes }: { at?: string; enoughBytes?: number } = {}) {
  const held = new ResponseTexts(spillTo(at, memoryBytes), enoughBytes);
  onTestFinished(async () => {
    await held.discard();
    await held.close();
    expect(openFilesIn(at)).toBe(0);
  });
  const begin = async (...pieces: Piece[]) => {
    held.begin();
    for (const piece of pieces) {
      held.bytes(typeof piece === 'number' ? Buffer.alloc(piece, 'x') : Buffer.from(piece));
      await held.flush();
    }
  };
  const put = async (...pieces: Piece[]) => {
    await begin(...pieces);
    held.end();
  };
  return { held, begin, put };
}

test('texts are what was put in, wherever they are held', async () => {
  const text = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 });
  const parts = fc.array(fc.nat(200), { minLength: 2, maxLength: 2 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { maxLength: 5 }),
      fc.nat(40),
      parts,
      async (texts, memoryBytes, [start = 0, end = 0]) => {
        const { held, put } = hold(memoryBytes);
        for (const pieces of texts) await put(...pieces);
        await held.close();
        expect(held.texts.length).toBe(texts.length);
        for (const [index, content] of held.texts.entries()) {
          const expected = Buffer.concat(texts[index] ?? []);
          expect(content.length).toBe(expected.length);
          expect(await content.read(0, content.length)).toEqual(expected);
          expect(await content.read(start, end)).toEqual(expected.subarray(start, Math.max(start, end)));
          await content.release();
        }
      },
    ),
    numRuns(500),
  );
  expect([openFilesIn(directory), readdirSync(directory)]).toEqual([0, []]);
});

test('many texts of one answer fill neither the memory nor the table of open files', async () => {
  const { held, put } = hold(200_000);
  for (let index = 0; index < 400; index += 1) await put(Buffer.alloc(190_000, index));
  expect(openFilesIn(directory)).toBe(1);
  expect(await held.texts[399]?.read(189_999, 190_000)).toEqual(Buffer.from([399 % 256]));
});

test('so many short texts that no memory is enough are refused', async () => {
  const { held } = hold(1_000);
  let texts = 0;
  const more = async () => {
    for (; texts < 1_000; texts += 1) {
      held.begin();
      held.bytes(Buffer.alloc(900));
      held.end();
      await held.flush();
    }
  };
  await expect(more()).rejects.toMatchObject({ code: 'answer-too-large' });
  expect(texts * 900).toBeLessThanOrEqual(64 * 1_000);
});

test('a directory that is not there is told', async () => {
  const { begin } = hold(1, { at: join(directory, 'none') });
  await expect(begin('ab')).rejects.toMatchObject({ code: 'local-io', message: expect.stringContaining('none') });
});

test('a disk that is full is named, and has its space again', async (context) => {
  const { directory: at } = SmallDisk.mount(context, join(directory, 'disk'), 64);
  const { held, begin } = hold(1, { at });
  const message = `no space left on device: ${at} (write ENOSPC)`;
  await expect(begin(100_000)).rejects.toMatchObject({ code: 'disk-full', message });
  await held.discard();
  await held.close();
  const { bfree, blocks } = statfsSync(at);
  expect(bfree).toBe(blocks);
});

test('a text that is ended early keeps those before it; only one under way may be enough', async () => {
  const { held, begin, put } = hold(10, { enoughBytes: 50 });
  for (const [length, isEnough] of [
    [100, true],
    [49, false],
  ] as const) {
    expect(held.hasEnough).toBe(false);
    await begin(length);
    expect(held.hasEnough).toBe(isEnough);
    held.end();
  }
  await put(50);
  expect(held.hasEnough).toBe(false);
  await begin(`\ufffd${'y'.repeat(100)}`);
  held.endEarly();
  await held.close();
  const read = await Promise.all(held.texts.map((each) => each.read(0, each.length)));
  expect(read.map(String)).toEqual([...[100, 49, 50].map((length) => 'x'.repeat(length)), `\ufffd${'y'.repeat(100)}`]);
});

test('what was released cannot be read', async () => {
  const { held, put } = hold(1);
  await put();
  await held.close();
  await held.texts[0]?.release();
  await expect(held.texts[0]?.read(0, 1)).rejects.toMatchObject({ code: 'internal' });
});

test('a temporary file that another process makes shorter is an error, not a shorter text', async () => {
  const { held, put } = hold(10);
  await put(100);
  await held.close();
  const open = execFileSync('find', [`/proc/${process.pid}/fd`, '-lname', `${directory}/.answer-*`], {
    encoding: 'utf8',
  });
  truncateSync(open.trim(), 50);
  const [text] = held.texts;
  expect(await text?.read(0, 50)).toEqual(Buffer.alloc(50, 'x'));
  const error = { code: 'local-io', hint: expect.stringMatching(/truncates/) };
  await expect(text?.read(0, 100)).rejects.toMatchObject(error);
});

test('the entries of an answer, and their paths, have limits', async () => {
  const wanted = [{ taskId: TASK, file: 'stdout', offset: 0 }] as const;
  const files = new Map([['3', 'stdout']] as const);
  const item = (relativepath: string, task: string = TASK) =>
    new Map<string, Value>(Object.entries({ submittedtaskinfoid: task, filetype: '3', relativepath }));
  const read = (items: readonly Value[]) =>
    readParts(wanted, files, spillTo(directory), async ({ onItem }) => {
      for (const each of items) onItem?.(each, undefined);
    });
  for (const length of [4_096, 4_097]) {
    const path = 'x'.repeat(length);
    const { parts } = await read([item(path)]);
    expect(parts.map(({ relativePath }) => relativePath)).toEqual([length === 4_096 ? path : null]);
  }
  const others = Array.from({ length: 9_999 }, () => item('', '7'));
  expect(await read([...others, item('')])).toMatchObject({ refused: 9_999, parts: [{ taskId: TASK }] });
  await expect(read([...others, item(''), null, item('')])).rejects.toMatchObject({ code: 'answer-too-large' });
});

test('a text is cut where no request needs more of it', async () => {
  const request = { taskId: TASK, file: 'stdout', offset: 0 } as const;
  const cutAt = async (...enough: (number | undefined)[]) => {
    const wanted = enough.map((enoughBytes) => ({ ...request, enoughBytes }));
    const { beginning } = await readParts(wanted, new Map(), spillTo(directory), async ({ lifted }) => {
      lifted.begin();
      for (let bytes = 0; bytes < 100 && !lifted.hasEnough; bytes += 1) lifted.bytes(Buffer.alloc(1));
      if (!lifted.hasEnough) lifted.end();
    });
    await beginning?.release();
    return beginning?.length;
  };
  expect([await cutAt(30, 20), await cutAt(20, undefined), await cutAt(200)]).toEqual([20, undefined, undefined]);
});
