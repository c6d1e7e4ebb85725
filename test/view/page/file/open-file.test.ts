import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { windowOf } from '../../../../src/view/content/content.ts';
import type { LinesQuery } from '../../../../src/view/contract/addresses.ts';
import { RefusedByView } from '../../../../src/view/page/api.ts';
import { type ByteSource, OpenFile } from '../../../../src/view/page/file/open-file.ts';
import { MAX_BYTES } from '../../../../src/view/page/file/text-window.ts';
import { sourceOf } from '../../../support/view-models.ts';

/** A content in memory, as the server would hand it out. */
class MemoryContent implements ByteSource {
  /** Answers are made at once, and arrive then. */
  arrival = Promise.resolve();
  /** The same, of lines that are counted first. */
  counting = Promise.resolve();
  /** Answers have no numbers of lines: the server has not counted them. */
  isUncounted = false;
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
    const line = window.beginsLine && !this.isUncounted ? lineAt(content, window.start) : undefined;
    const answer = { ...window, version: version ?? this.now, total: content.length, line };
    await this.arrival;
    return answer;
  }

  async place(at: { line: number } | { byte: number }, version: string) {
    const content = this.#content(`place of ${JSON.stringify(at)}`, version);
    const wanted = 'line' in at ? at.line : lineAt(content, at.byte);
    const line = Math.min(wanted, lineAt(content, content.length));
    let byte = 0;
    for (let before = 0; before < line; before++) byte = content.indexOf('\n', byte) + 1;
    await this.counting;
    return { version, line, byte, bytes: content.length };
  }

  async frame() {
    await turn();
  }

  async wait(ms: number) {
    this.waited.push(ms);
  }

  /** Holds all answers until what is returned is called. */
  hold(): () => void {
    const [arrival, release] = held();
    this.arrival = arrival;
    return release;
  }

  /** `isGone`: as the server does, nothing is left under the version before. */
  rewrite(isGone = false): void {
    if (isGone) this.versions.clear();
    this.versions.set('two', Buffer.from('anew\n'));
    this.now = 'two';
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

function held(): [promise: Promise<void>, release: () => void] {
  let release = () => {};
  const promise = new Promise<void>((resolve) => {
    release = resolve;
  });
  return [promise, release];
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
    file.pause();
    expect([content.asked, file.condition.value.bytes, file.followedTo.value]).toEqual([[], 42, 21]);
    file.target.value = undefined;
    file.follow();
    await settled(file);
    expect([textOf(file), file.target.value]).toEqual([lines(6), 'end']);
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

  it('begins anew when the file was rewritten, also where an answer reports it', async () => {
    for (const isReported of [true, false]) {
      const content = new MemoryContent(lines(100));
      const file = await opened(content);
      content.rewrite(!isReported);
      file.announce(isReported ? { version: 'two', bytes: 5 } : { version: 'one', bytes: 1_000 });
      await settled(file);
      expect(textOf(file)).toBe('anew\n');
      expect(file.condition.value).toMatchObject({ version: 'two', bytes: 5, phase: 'followed' });
    }
  });

  it('keeps what it was, if somebody reads it', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    file.pause();
    content.rewrite();
    file.announce({ version: 'two', bytes: 5 });
    await settled(file);
    expect(textOf(file)).toBe(lines(100));
    expect(file.condition.value.phase).toBe('former');
    file.reachEnd();
    expect(file.condition.value.phase).toBe('former');
    file.jumpTo(5_000);
    file.follow();
    await settled(file);
    expect([textOf(file), file.target.value, file.condition.value.phase]).toEqual(['anew\n', 'end', 'followed']);
  });

  it.each([
    ['a jump', (file: OpenFile) => file.jumpTo(0)],
    ['rows before', (file: OpenFile) => file.wantBefore()],
    ['rows behind', (file: OpenFile) => file.wantBehind()],
  ])('asks once for what is gone, if the file was rewritten while it is paused: for %s', async (_, want) => {
    const content = new MemoryContent(lines(60_000));
    const file = await opened(content, { at: 400_000, follows: false });
    content.rewrite(true);
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
    content.rewrite(true);
    const file = new OpenFile(content, { version: 'one', follows: false });
    await settled(file);
    expect(content.asked).toHaveLength(1);
    expect(file.condition.value.problem?.message).toBe('it is another by now');
  });

  it('takes back what is taken back of the mirror', async () => {
    const content = new MemoryContent('sure\ntorn');
    const file = await opened(content);
    content.versions.set('one', Buffer.from('sure\n'));
    const { value: before } = file.changes;
    file.announce({ version: 'one', bytes: 5 });
    expect(file.changes.value).toBe(before + 1);
    grow(content, file, 'whole\n');
    await settled(file);
    expect(textOf(file)).toBe('sure\nwhole\n');
  });

  it('that is cut before the page gets to know it is requested with pauses', async () => {
    const content = new MemoryContent('sure\n');
    const file = await opened(content);
    const waits = [500, 1_000, 2_000];
    content.wait = async (ms) => {
      content.waited.push(ms);
      expect(file.condition.value.problem?.message).toContain('the mirror is shorter');
      if (content.waited.length === waits.length) content.versions.set('one', Buffer.from('sure\nwhole\n'));
    };
    file.announce({ version: 'one', bytes: 11 });
    await settled(file);
    expect([content.waited, textOf(file), file.condition.value.problem]).toEqual([waits, 'sure\nwhole\n', undefined]);
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

  it('pauses as shortly after a success as at first, and asks for rows at either side once', async () => {
    const content = new MemoryContent(lines(120_000));
    const file = await opened(content, { at: 800_000, follows: false });
    for (const want of [() => file.wantBefore(), () => file.wantBehind()]) {
      content.failures = [new Error('no answer'), new Error('no answer')];
      content.waited = [];
      content.asked = [];
      want();
      await settled(file);
      expect([content.waited, content.asked.length, file.condition.value.problem]).toEqual([
        [500, 1_000],
        3,
        undefined,
      ]);
    }
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

describe('an answer on its way', () => {
  it.each([
    ['its end', {}, 'followed'],
    ['a place in it', { at: 3 }, 'paused'],
  ])(
    'of the version before is not shown for %s, but that of the version which was reported',
    async (_, place, phase) => {
      for (const isRewrittenFirst of [false, true]) {
        const content = new MemoryContent(lines(10));
        const release = content.hold();
        if (isRewrittenFirst) content.rewrite();
        const file = new OpenFile(content, { follows: true, ...place, ...('at' in place && { follows: false }) });
        if (!isRewrittenFirst) content.rewrite();
        file.announce(isRewrittenFirst ? { version: 'one', bytes: 70 } : { version: 'two', bytes: 5 });
        release();
        if (isRewrittenFirst) file.announce({ version: 'two', bytes: 5 });
        await settled(file);
        expect(textOf(file)).toBe('anew\n');
        expect(file.condition.value).toMatchObject({ version: 'two', bytes: 5, phase, problem: undefined });
      }
    },
  );

  it('of a later part of the version before is not shown', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    const release = content.hold();
    grow(content, file, lines(100_000, 100));
    content.rewrite();
    file.announce({ version: 'two', bytes: 5 });
    release();
    await settled(file);
    expect(textOf(file)).toBe('anew\n');
    expect(file.condition.value).toMatchObject({ version: 'two', phase: 'followed' });
  });

  it('with rows of the version before, or behind what was taken back, is dropped', async () => {
    for (const [now, text] of [
      ['two', 'anew\n'],
      ['one', 'sure\n'],
    ] as const) {
      const content = new MemoryContent('sure\ntorn');
      const file = await opened(content);
      const release = content.hold();
      grow(content, file, ' more\n');
      content.rewrite();
      content.now = now;
      content.versions.set('one', Buffer.from('sure\n'));
      file.announce({ version: now, bytes: 5 });
      release();
      await settled(file);
      expect([textOf(file), file.condition.value.bytes]).toEqual([text, 5]);
    }
  });

  it('moves nothing once the reader paused, or is at another place', async () => {
    const content = new MemoryContent(lines(100));
    const file = await opened(content);
    let release = content.hold();
    grow(content, file, lines(100_000, 100));
    file.pause();
    release();
    await settled(file);
    expect([textOf(file), file.condition.value.phase]).toEqual([lines(100), 'paused']);
    release = content.hold();
    file.jumpTo(900_000);
    await turn();
    release();
    // It came, and is not drawn yet.
    const [frame, draw] = held();
    content.frame = () => frame;
    await turn();
    file.jumpTo(7);
    draw();
    await settled(file);
    expect([textOf(file), file.target.value]).toEqual([lines(100), { byte: 7 }]);
  });

  it.each([true, false])('gives way to a place that is asked for first: follows: %s', async (follows) => {
    const content = new MemoryContent(lines(60_000));
    const { length } = content.text;
    for (const [jump, at] of [
      [(file: OpenFile) => file.jumpTo(0), 0],
      [(file: OpenFile) => file.jumpToEnd(), length - 1],
      [(file: OpenFile) => [file.announce({ version: 'one', bytes: length }), file.jumpTo(300_000)], 300_000],
    ] as const) {
      const file = new OpenFile(content, { follows });
      jump(file);
      await settled(file);
      const { window } = file;
      expect([window.start <= at && at < window.end, file.condition.value.phase]).toEqual([true, 'paused']);
      expect(file.changes.value).toBe(1);
    }
  });

  it('is followed by the place that the reader went to last, whatever is seen soon', async () => {
    const content = new MemoryContent(lines(60_000));
    const file = await opened(content);
    const release = content.hold();
    file.jumpTo(300_000);
    file.wantBefore();
    release();
    await settled(file);
    expect(file.target.value).toEqual({ byte: 300_000 });
    const other = new OpenFile(content, { at: 1_000_000, follows: false });
    other.jumpTo(7);
    await settled(other);
    expect(other.target.value).toEqual({ byte: 7 });
  });

  it('with the number of a line is requested for other rows that are here by then', async () => {
    const content = new MemoryContent(lines(60_000));
    content.isUncounted = true;
    const [counting, count] = held();
    content.counting = counting;
    const file = await opened(content, { at: 300_000, follows: false });
    file.jumpTo(500_000);
    await settled(file);
    count();
    await settled(file);
    const { start } = file.window;
    expect(file.window.lineOf(0)).toBe(lineAt(content.text, start));
    // Another version that has the same rows.
    file.jumpTo(100_000);
    await settled(file);
    const [counted, go] = held();
    content.counting = counted;
    file.follow();
    await settled(file);
    const two = Buffer.from(content.text);
    content.versions.set('two', two.fill('x', 0, 1_000));
    content.now = 'two';
    file.announce({ version: 'two', bytes: two.length });
    await settled(file);
    go();
    await settled(file);
    expect(file.window.lineOf(0)).toBe(lineAt(two, file.window.start));
  });
});
