import { readdirSync, readlinkSync, statfsSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ResponseTexts, readParts } from '../../../src/remote/content/response-texts.ts';
import type { Value } from '../../../src/remote/content/values.ts';
import { SmallDisk } from '../../support/e2e-mount.ts';
import { numRuns } from '../../support/property-runs.ts';
import { directoryOfFile, openFilesIn } from '../../support/temp-directory.ts';
import { spillTo, TASK } from '../../support/wire-remote.ts';

const directory = directoryOfFile();

test('texts are what was put in, wherever they are held', async () => {
  const text = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { maxLength: 5 }),
      fc.nat(40),
      fc.nat(200),
      fc.nat(200),
      async (texts, memoryBytes, start, end) => {
        const held = new ResponseTexts(spillTo(directory, memoryBytes));
        for (const pieces of texts) {
          held.begin();
          for (const piece of pieces) {
            held.bytes(Buffer.from(piece));
            await held.flush();
          }
          held.end();
        }
        await held.close();
        expect(held.texts.length).toBe(texts.length);
        for (const [index, content] of held.texts.entries()) {
          const expected = Buffer.concat(texts[index] ?? []);
          expect(content.length).toBe(expected.length);
          expect(await content.read(0, content.length)).toEqual(expected);
          const part = expected.subarray(start, Math.max(start, end));
          expect(await content.read(start, end)).toEqual(part);
        }
        await Promise.all(held.texts.map((content) => content.release()));
      },
    ),
    numRuns(500),
  );
  expect(openFilesIn(directory)).toBe(0);
  expect(readdirSync(directory)).toEqual([]);
});

test('many texts of one answer fill neither the memory nor the table of open files', async () => {
  const held = new ResponseTexts(spillTo(directory, 200_000));
  for (let index = 0; index < 400; index += 1) {
    held.begin();
    held.bytes(Buffer.alloc(190_000, index));
    await held.flush();
    held.end();
  }
  expect(openFilesIn(directory)).toBe(1);
  expect(await held.texts[399]?.read(189_999, 190_000)).toEqual(Buffer.from([399 % 256]));
  await held.discard();
  await held.close();
  expect(openFilesIn(directory)).toBe(0);
});

test('so many short texts that no memory is enough are refused', async () => {
  const held = new ResponseTexts(spillTo(directory, 1_000));
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
  await held.discard();
  await held.close();
});

test('a directory that is not there is told', async () => {
  const held = new ResponseTexts(spillTo(join(directory, 'none'), 1));
  held.begin();
  held.bytes(Buffer.from('ab'));
  await expect(held.flush()).rejects.toMatchObject({ code: 'local-io', message: expect.stringContaining('none') });
  await held.discard();
  await held.close();
});

test('a disk that is full is named, and has its space again', async (context) => {
  const { directory: at } = SmallDisk.mount(context, join(directory, 'disk'), 64);
  const held = new ResponseTexts(spillTo(at, 1));
  held.begin();
  held.bytes(Buffer.alloc(100_000));
  const message = `no space left on device: ${at} (write ENOSPC)`;
  await expect(held.flush()).rejects.toMatchObject({ code: 'disk-full', message });
  await held.discard();
  await held.close();
  const { bfree, blocks } = statfsSync(at);
  expect(bfree).toBe(blocks);
});

test('a text that is ended early keeps those before it', async () => {
  const held = new ResponseTexts(spillTo(directory, 10), 50);
  held.begin();
  held.bytes(Buffer.alloc(100, 'x'));
  await held.flush();
  held.end();
  held.begin();
  held.bytes(Buffer.from(`\ufffd${'y'.repeat(100)}`));
  await held.flush();
  expect(held.hasEnough).toBe(true);
  const text = held.endEarly();
  await held.close();
  const [first] = held.texts;
  expect((await first?.read(0, first.length))?.toString()).toBe('x'.repeat(100));
  await first?.release();
  expect((await text.read(0, text.length)).toString()).toBe(`\ufffd${'y'.repeat(100)}`);
  await text.release();
  expect(openFilesIn(directory)).toBe(0);
});

test('what was released cannot be read', async () => {
  const held = new ResponseTexts(spillTo(directory, 1));
  held.begin();
  held.end();
  await held.close();
  await held.texts[0]?.release();
  await expect(held.texts[0]?.read(0, 1)).rejects.toMatchObject({ code: 'internal' });
});

test('a temporary file that another process makes shorter is an error, not a shorter text', async () => {
  const held = new ResponseTexts(spillTo(directory, 10));
  held.begin();
  held.bytes(Buffer.alloc(100, 'x'));
  await held.flush();
  held.end();
  await held.close();
  const fds = readdirSync('/proc/self/fd').map((fd) => `/proc/self/fd/${fd}`);
  const file = fds.find((fd) => linkOf(fd).startsWith(join(directory, '.answer-')));
  truncateSync(file ?? '', 50);
  const [text] = held.texts;
  expect(await text?.read(0, 50)).toEqual(Buffer.alloc(50, 'x'));
  await expect(text?.read(0, 100)).rejects.toMatchObject({
    code: 'local-io',
    hint: expect.stringMatching(/truncates/),
  });
  await held.discard();
});

function linkOf(fd: string): string {
  try {
    return readlinkSync(fd);
  } catch {
    // It was that of the directory.
    return '';
  }
}

test('only a text that is under way may be enough, after one that was longer', async () => {
  const held = new ResponseTexts(spillTo(directory, 10), 50);
  for (const length of [100, 49]) {
    expect(held.hasEnough).toBe(false);
    held.begin();
    held.bytes(Buffer.alloc(length));
    await held.flush();
    expect(held.hasEnough).toBe(length >= 50);
    held.end();
    expect(held.hasEnough).toBe(false);
  }
  held.begin();
  held.bytes(Buffer.alloc(50));
  expect(held.hasEnough).toBe(true);
  held.end();
  await held.discard();
  await held.close();
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
