/** Windows of lines: whatever the bytes and wherever they are cut, every byte comes once, and a line is whole where it fits. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { FileContent, type Window, windowOf } from '../../../src/view/content/content.ts';
import { anyCharacter, numRuns } from '../../support/property-runs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { sourceOf } from '../../support/view-models.ts';

const LEAST = 64;

/** Lines of any length, with either end, of any script, and bytes that are no text; the last one may have no end. */
const content = fc
  .array(
    fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 40 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      fc.nat(400).map((length) => Buffer.from('ž'.repeat(length))),
      fc.constantFrom('\n', '\r\n', '\n\n', '\r').map((text) => Buffer.from(text)),
    ),
    { maxLength: 60 },
  )
  .map((pieces) => Buffer.concat(pieces));
const size = fc.integer({ min: LEAST, max: 600 });

const endOf = ({ start, bytes }: Window) => start + bytes.length;

/** What every window is, wherever it came from. */
function expectSound(bytes: Buffer, window: Window, most: number): void {
  expect(bytes.subarray(window.start, endOf(window)).equals(window.bytes)).toBe(true);
  expect(window.bytes.length).toBeLessThanOrEqual(most);
  expect(window.beginsLine).toBe(window.start === 0 || bytes[window.start - 1] === 0x0a);
}

/** All windows of a content, in its order, asked for from its beginning or from its end. */
function windowsOf(bytes: Buffer, sizes: readonly number[], isBack: boolean): Window[] {
  const all: Window[] = [];
  for (let at = isBack ? bytes.length : 0; isBack ? at > 0 : at < bytes.length; ) {
    const most = sizes[all.length % sizes.length] ?? LEAST;
    const window = windowOf(sourceOf(bytes), { [isBack ? 'to' : 'at']: at, bytes: most });
    expect(isBack ? endOf(window) : window.start).toBe(at);
    expect(window.bytes.length, 'it goes on').toBeGreaterThan(0);
    expectSound(bytes, window, most);
    at = isBack ? window.start : endOf(window);
    all.push(window);
  }
  return isBack ? all.reverse() : all;
}

describe('windows', () => {
  it.each([
    ['forwards have every byte once, and end with a line', false],
    ['backwards have every byte once, and begin with a line', true],
  ])('%s unless one is longer than they may be', (_, isBack) => {
    fc.assert(
      fc.property(content, fc.array(size, { minLength: 1, maxLength: 5 }), (bytes, sizes) => {
        const windows = windowsOf(bytes, sizes, isBack);
        expect(Buffer.concat(windows.map((window) => window.bytes)).equals(bytes)).toBe(true);
        for (const window of windows) {
          const end = endOf(window);
          const isWhole = isBack ? window.beginsLine : bytes[end - 1] === 0x0a || end === bytes.length;
          expect(isWhole || !window.bytes.subarray(0, isBack ? -1 : undefined).includes(0x0a)).toBe(true);
        }
      }),
      numRuns(300),
    );
  });

  it('of a byte begin with its line', () => {
    fc.assert(
      fc.property(content, fc.nat(), size, (bytes, anywhere, most) => {
        const from = bytes.length === 0 ? 0 : anywhere % (bytes.length + 1);
        const window = windowOf(sourceOf(bytes), { from, bytes: most });
        expectSound(bytes, window, most);
        expect(window.start).toBe(bytes.subarray(0, from).lastIndexOf(0x0a) + 1);
      }),
      numRuns(300),
    );
  });

  it('cut no character of UTF-8, in either direction, in a line without an end', () => {
    const text = 'až😀ř'.repeat(500);
    const bytes = Buffer.from(text);
    const isWhole = (window: Window) => !window.bytes.toString('utf8').includes('\ufffd');
    for (const most of [64, 65, 66, 67, 101])
      for (const isBack of [false, true]) expect(windowsOf(bytes, [most], isBack).every(isWhole)).toBe(true);
  });

  it('of a byte far within a line begin near it, with a character', () => {
    const bytes = Buffer.from(`first\n${'ž'.repeat(100_000)}`);
    for (const from of [150_000, 150_001]) {
      const { start, beginsLine } = windowOf(sourceOf(bytes), { from, bytes: LEAST });
      expect(start).toBe(150_000);
      expect(beginsLine).toBe(false);
    }
  });

  it('beyond the end are the end', () => {
    const source = sourceOf(Buffer.from('one\ntwo'));
    expect(windowOf(source, { from: 1_000, bytes: LEAST }).bytes.toString()).toBe('two');
    expect(windowOf(source, { at: 1_000, bytes: LEAST })).toMatchObject({ start: 7, bytes: Buffer.alloc(0) });
    expect(windowOf(source, { to: 1_000, bytes: LEAST }).bytes.toString()).toBe('one\ntwo');
    expect(windowOf(source, { bytes: LEAST }).bytes.toString()).toBe('one\ntwo');
    expect(windowOf(sourceOf(Buffer.alloc(0)), { bytes: LEAST })).toMatchObject({ start: 0, beginsLine: true });
  });
});

it('bytes that are read while another version takes the place are refused', () => {
  const file = path.join(temporaryDirectory(), 'stdout');
  fs.writeFileSync(file, 'old\n');
  let version = 'g1';
  const content = new FileContent(fs.openSync(file, 'r'), version, 'stdout', () => version);
  onTestFinished(() => content.close());
  expect(content.read(0, 4).toString()).toBe('old\n');
  const read = vi.spyOn(fs, 'readSync').mockImplementationOnce(() => {
    version = 'g2';
    return 4;
  });
  onTestFinished(() => read.mockRestore());
  expect(() => content.read(0, 4)).toThrow('rewritten');
});
