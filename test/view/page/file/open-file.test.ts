import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { windowOf } from '../../../../src/view/content/content.ts';
import type { LinesQuery } from '../../../../src/view/contract/addresses.ts';
import { RefusedByView } from '../../../../src/view/page/api.ts';
import { type ByteSource, OpenFile } from '../../../../src/view/page/file/open-file.ts';
import { MAX_BYTES } from '../../../../src/view/page/file/text-window.ts';
import { sourceOf } from '../../../support/view-models.ts';

/** A content in memory, as the server would hand it out; each answer waits until `answer` is called. */
class MemoryContent implements ByteSource {
  versions = new Map([['one', Buffer.alloc(0)]]);
  now = 'one';
  asked: string[] = [];
  failures: Error[] = [];
  waited: number[] = [];

  constructor(text: string) {
    this.versions.set('one', Buffer.from(text));
  }

  get text(): Buffer {
    return this.versions.get(this.now) ?? Buffer.alloc(0);
  }

  async stretch({ from, at, to, bytes = 0 }: LinesQuery, version: string | undefined) {
    const content = this.#content(at === undefined ? `${from ?? ''}-${to ?? ''}` : `${at}..${at + bytes}`, version);
    const window = windowOf(sourceOf(content), { from, at, to, bytes });
    const line = window.beginsLine ? lineAt(content, window.start) : undefined;
    return { ...window, version: version ?? this.now, total: content.length, line };
  }

  async place(at: { line: number } | { byte: number }, version: string) {
    const content = this.#content(`place of ${JSON.stringify(at)}`, version);
    const wanted = 'line' in at ? at.line : lineAt(content, at.byte);
    const line = Math.min(wanted, lineAt(content, content.length));
    let byte = 0;
    for (let before = 0; before < line; before++) byte = content.indexOf('\n', byte) + 1;
    return { version, line, byte, bytes: content.length };
  }

  async frame() {
    await turn();
  }

  async wait(ms: number) {
    this.waited.push(ms);
  }

  #content(what: string, version: string | undefined): Buffer {
    this.asked.push(what);
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    const content = this.versions.get(version ?? this.now);
    if (content === undefined) throw new RefusedByView(409, { message: 'it is another by now', version: this.now });
    return content;
  }
}

const lineAt = (content: Buffer, byte: number) => content.subarray(0, byte).toString().split('\n').length - 1;

const lines = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => `line ${from + index}\n`).join('');

async function settled(file: OpenFile): Promise<void> {
  for (let before = -1; before !== file.changes.value; ) {
    before = file.changes.value;
    for (let turns = 0; turns < 10; turns++) await turn();
  }
}

async function opened(content: MemoryContent, options: { at?: number; follows?: boolean } = {}) {
  const file = new OpenFile(content, { at: options.at, follows: options.follows ?? true });
  await settled(file);
  return file;
}

const textOf = ({ window }: OpenFile) => Buffer.concat(window.rows.map(({ bytes }) => bytes)).toString();

const grow = (content: MemoryContent, file: OpenFile, text: string) => {
  content.versions.set(content.now, Buffer.concat([content.text, Buffer.from(text)]));
  file.announce({ version: content.now, bytes: content.text.length });
};

describe('an opened content', () => {
  it('shows its end first, and grows by the bytes that come', async () => {
    const content = new MemoryContent(lines(3));
    const file = await opened(content);
    expect(file.target.value).toBe('end');
    content.asked = [];
    grow(content, file, 'half a li');
    await settled(file);
    grow(content, file, 'ne\nanother\n');
    await settled(file);
    expect(textOf(file)).toBe(`${lines(3)}half a line\nanother\n`);
    expect(content.asked).toEqual(['21..30', '30..41']);
  });

  it('fetches nothing while it is paused, and everything when it is followed again', async () => {
    const content = new MemoryContent(lines(3));
    const file = await opened(content);
    file.pause();
    content.asked = [];
    grow(content, file, lines(3, 3));
    await settled(file);
    expect([content.asked, file.condition.value.bytes, file.followedTo.value]).toEqual([[], 42, 21]);
    file.follow();
    await settled(file);
    expect(textOf(file)).toBe(lines(6));
  });

  it('skips what came faster than it can be shown', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    content.asked = [];
    grow(content, file, lines(100_000, 100));
    await settled(file);
    expect(content.asked).toHaveLength(1);
    expect(file.window.end).toBe(content.text.length);
    expect(textOf(file).endsWith('line 100099\n')).toBe(true);
    expect(file.window.lineOf(0)).toBeGreaterThan(80_000);
  });

  it('jumps to a byte, and on to both sides', async () => {
    const content = new MemoryContent(lines(60_000));
    const file = await opened(content);
    const byte = content.text.indexOf('line 30000\n');
    file.jumpTo(byte);
    await settled(file);
    expect(file.following.value).toBe(false);
    expect(file.target.value).toEqual({ byte });
    expect(file.window.lineOf(file.window.rowAt(byte))).toBe(30_000);
    const { start, end } = file.window;
    file.wantBefore();
    await settled(file);
    expect(file.window.start).toBeLessThan(start);
    file.wantBehind();
    await settled(file);
    expect(file.window.end).toBeGreaterThan(end);
    expect(textOf(file)).toBe(content.text.subarray(file.window.start, file.window.end).toString());
  });

  it('shows its end for a byte past it', async () => {
    const content = new MemoryContent(lines(10));
    const file = await opened(content, { at: 1_000_000, follows: false });
    expect(textOf(file)).toBe(lines(10));
    expect(file.condition.value).toMatchObject({ phase: 'paused' });
    expect(content.asked.length).toBeLessThan(4);
  });

  it('can be read from its beginning to its end within its limits', async () => {
    const content = new MemoryContent(lines(60_000));
    const file = await opened(content, { at: 0, follows: false });
    while (file.window.end < content.text.length) {
      file.wantBehind();
      await settled(file);
      expect(file.window.end - file.window.start).toBeLessThanOrEqual(MAX_BYTES);
    }
    expect(file.window.lineOf(file.window.rows.length - 1)).toBe(59_999);
  });

  it('shows the last state of a progress bar of any length, and the lines before and after it', async () => {
    const states = Array.from({ length: 30_002 }, (_, state) => `\r${String(state).padEnd(89, '.')}`).join('');
    const content = new MemoryContent(`Epoch 1${states}\nEpoch 2${states}`);
    const file = await opened(content);
    const rows = () => file.window.rows.map(({ bytes }) => Buffer.from(bytes).toString());
    const lastStates = () => rows().map((row) => Number(row.split('\r').at(-1)?.replaceAll('.', '')));
    expect(lastStates()).toEqual([30_001]);
    for (let asked = 0; asked < 4; asked++) {
      file.wantBefore();
      await settled(file);
    }
    expect([file.window.start, lastStates()]).toEqual([0, [30_001, 30_001]]);
    expect(file.window.rows.map((_, index) => file.window.lineOf(index))).toEqual([0, 1]);
    const { states: counted, hasMore } = file.window.foldedStates(0);
    expect([counted > 0 && counted < 30_002, hasMore]).toEqual([true, true]);
    expect(content.asked.length).toBeLessThan(10);
    // From the beginning, its state of long ago gives way to its last one.
    const other = await opened(content, { at: 0, follows: false });
    for (let asked = 0; asked < 4; asked++) {
      other.wantBehind();
      await settled(other);
    }
    expect([other.window.start, other.window.end]).toEqual([0, content.text.length]);
    expect(other.window.rows.length).toBe(2);
    expect(Buffer.from(other.window.rows[1]?.bytes ?? '').toString()).toContain('\r30001.');
  });

  it('begins anew when the file was rewritten', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    content.versions.set('two', Buffer.from('anew\n'));
    content.now = 'two';
    file.announce({ version: 'two', bytes: 5 });
    await settled(file);
    expect(textOf(file)).toBe('anew\n');
    expect(file.condition.value).toMatchObject({ version: 'two', bytes: 5, phase: 'followed' });
  });

  it('keeps what it was, if somebody reads it', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    file.pause();
    content.versions.set('two', Buffer.from('anew\n'));
    content.now = 'two';
    file.announce({ version: 'two', bytes: 5 });
    await settled(file);
    expect(textOf(file)).toBe(lines(100));
    expect(file.condition.value.phase).toBe('former');
    file.reachEnd();
    expect(file.condition.value.phase).toBe('former');
    file.follow();
    await settled(file);
    expect(textOf(file)).toBe('anew\n');
    expect(file.condition.value.phase).toBe('followed');
  });

  it.each([
    ['a jump', (file: OpenFile) => file.jumpTo(0)],
    ['rows before', (file: OpenFile) => file.wantBefore()],
    ['rows behind', (file: OpenFile) => file.wantBehind()],
  ])('asks once for what is gone, if the file was rewritten while it is paused: for %s', async (_, want) => {
    const content = new MemoryContent(lines(60_000));
    const file = await opened(content, { at: 400_000, follows: false });
    // As the server does: what was kept of it is another content, and nothing is left under this version.
    content.versions = new Map([['two', Buffer.from('anew\n')]]);
    content.now = 'two';
    content.asked = [];
    want(file);
    await settled(file);
    want(file);
    await settled(file);
    expect(content.asked).toHaveLength(1);
    expect(file.condition.value).toMatchObject({ phase: 'former', version: 'one' });
    file.follow();
    await settled(file);
    expect(textOf(file)).toBe('anew\n');
    expect(file.condition.value).toMatchObject({ phase: 'followed', problem: undefined });
  });

  it('asks once for a generation that is gone before any of it came', async () => {
    const content = new MemoryContent(lines(10));
    content.versions = new Map([['two', Buffer.from('anew\n')]]);
    content.now = 'two';
    const file = new OpenFile(content, { version: 'one', follows: false });
    await settled(file);
    expect(content.asked).toHaveLength(1);
    expect(file.condition.value.problem?.message).toBe('it is another by now');
  });

  it('is reported by an answer that the file was rewritten', async () => {
    const content = new MemoryContent(lines(10));
    const file = await opened(content);
    content.versions = new Map([['two', Buffer.from('anew\n')]]);
    content.now = 'two';
    file.announce({ version: 'one', bytes: 1_000 });
    await settled(file);
    expect(textOf(file)).toBe('anew\n');
  });

  it('takes back what is taken back of the mirror', async () => {
    const content = new MemoryContent('sure\ntorn');
    const file = await opened(content);
    content.versions.set('one', Buffer.from('sure\n'));
    file.announce({ version: 'one', bytes: 5 });
    grow(content, file, 'whole\n');
    await settled(file);
    expect(textOf(file)).toBe('sure\nwhole\n');
  });

  it('says what failed, and tries again with pauses that grow', async () => {
    const content = new MemoryContent(lines(3));
    content.failures = [
      new Error('no answer'),
      new Error('no answer'),
      new RefusedByView(429, { message: 'busy' }, 3_000),
    ];
    const problems: (string | undefined)[] = [];
    const file = new OpenFile(content, { follows: true });
    file.condition.subscribe(({ problem }) => problems.push(problem?.message));
    await settled(file);
    expect(problems).toContain('no answer');
    expect(content.waited).toEqual([500, 1_000, 3_000]);
    expect(file.condition.value.problem).toBeUndefined();
    expect(textOf(file)).toBe(lines(3));
  });

  it('asks for nothing once it is closed', async () => {
    const content = new MemoryContent(lines(3));
    const file = await opened(content);
    file.close();
    content.asked = [];
    grow(content, file, lines(3));
    await settled(file);
    expect(content.asked).toEqual([]);
  });
});
