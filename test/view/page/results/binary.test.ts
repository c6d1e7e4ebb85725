import { expect, it } from 'vitest';
import { stubPage } from '../../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const BINARY = '../../../../src/view/page/results/binary.tsx';

interface Binary {
  isBinary(beginning: Uint8Array): boolean;
  hexDump(bytes: Uint8Array): string;
}

async function binary(): Promise<Binary> {
  stubPage();
  return (await import(BINARY)) as Binary;
}

it('a result is binary by a byte of 0, or if more than three of ten bytes are none of UTF-8', async () => {
  const { isBinary } = await binary();
  const wrong = (count: number) => Buffer.concat([Buffer.alloc(count, 0xff), Buffer.alloc(10 - count, 'a')]);
  expect([0, 3, 4].map((count) => isBinary(wrong(count)))).toEqual([false, false, true]);
  expect([isBinary(Buffer.from('text\0')), isBinary(Buffer.from('žluť'.repeat(9)))]).toEqual([true, false]);
  expect(isBinary(new Uint8Array(0))).toBe(false);
});

it('a binary result is dumped as by hexdump -C', async () => {
  const { hexDump } = await binary();
  const bytes = Buffer.concat([Buffer.from(' ~\x7f\x1fABCDEFGHIJKL'), Buffer.from([0xff])]);
  expect(hexDump(bytes).split('\n')).toEqual([
    '00000000  20 7e 7f 1f 41 42 43 44  45 46 47 48 49 4a 4b 4c  | ~..ABCDEFGHIJKL|',
    `00000010  ff${' '.repeat(48)}|.|`,
  ]);
});
