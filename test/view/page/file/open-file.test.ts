import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { windowOf } from '../../../../src/view/content/content.ts';
import type { LinesQuery } from '../../../../src/view/contract/addresses.ts';
import { RefusedByView } from '../../../../src/view/page/api.ts';
import { type ByteSource, OpenFile } from '../../../../src/view/page/file/open-file.ts';
import { MAX_BYTES } from '../../../../src/view/page/file/text-window.ts';
import { expectCases } from '../../../support/errors.ts';
import { sourceOf } from '../../../support/view-models.ts';

/** A content in memory, as the server would hand it out. */
class MemoryContent implements ByteSource {
  /** Answers are made at once, and arrive then. */
  arrival = Promise.resolve();
  /** The same, of lines that are counted first. */
  counting = Promise.resolve();
  /** What was fetched is drawn then. */
  drawing = turn();
  /** Answers have no numbers of lines: the server has not counted them. */
  isUncounted = false;
  versions = new Map([['one', Buffer.alloc(0)]]);
  now = 'one';
  asked: string[] = [];
  failures: Error[] = [];
  waited: number[] = [];
  /** What it becomes after so many pauses of a step. */
  late: { waits: number; text: string } | undefined;

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
    await this.drawing;
  }

  async wait(ms: number) {
    this.waited.push(ms);
    if (this.waited.length === this.late?.waits) this.versions.set('one', Buffer.from(this.late.text));
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

const textOf = ({ window }: OpenFile) => Buffer.concat(window.rows.map(({ bytes }) => bytes)).toString();

/** A content, the page that opens it, and what happens to both: the steps of open-file.txt. */
class Story {
  content = new MemoryContent('');
  file: OpenFile | undefined;
  release = () => {};
  count = () => {};
  draw = () => {};
  /** What was shown as a problem since the last step. */
  readonly problems: string[] = [];

  open(options: { at?: number; version?: string }): void {
    const file = new OpenFile(this.content, { ...options, follows: !('at' in options || 'version' in options) });
    file.condition.subscribe(({ problem }) => void (problem !== undefined && this.problems.push(problem.message)));
    this.file = file;
  }

  #grow(text: string): void {
    const { content, file } = this;
    content.versions.set(content.now, Buffer.concat([content.text, Buffer.from(text)]));
    file?.announce({ version: content.now, bytes: content.text.length });
  }

  do(step: string): void {
    const { content, file } = this;
    const [word = '', ...rest] = step.split(' ');
    const [first = '', second] = rest;
    const steps: Readonly<Record<string, () => unknown>> = {
      content: () => content.versions.set('one', Buffer.from(textFrom(rest))),
      open: () => this.open(second === undefined ? {} : first === 'at' ? { at: Number(second) } : { version: second }),
      grow: () => this.#grow(textFrom(rest, content.text.toString().split('\n').length - 1)),
      rewrite: () => content.rewrite(first === 'gone'),
      late: () => {
        content.late = { waits: Number(first), text: textFrom(rest.slice(1)) };
      },
      announce: () => file?.announce({ version: first, bytes: Number(second) }),
      fail: () => content.failures.push(...Array.from(rest, (each) => failureOf(each))),
      hold: () => {
        this.release = content.hold();
      },
      release: () => this.release(),
      counting: () => {
        content.isUncounted = true;
        [content.counting, this.count] = held();
      },
      count: () => this.count(),
      frame: () => {
        [content.drawing, this.draw] = held();
      },
      draw: () => this.draw(),
      /** Another version that has the same rows. */
      twin: () => {
        content.versions.set('two', Buffer.from(content.text).fill('x', 0, 1_000));
        content.now = 'two';
      },
      pause: () => file?.pause(),
      follow: () => file?.follow(),
      jump: () => (first === 'end' ? file?.jumpToEnd() : file?.jumpTo(Number(first))),
      before: () => file?.wantBefore(),
      behind: () => file?.wantBehind(),
      reach: () => file?.reachEnd(),
      close: () => file?.close(),
    };
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    steps[word]();
  }

  /** What is shown, and what was requested and waited for since the last step. */
  get shown(): string {
    const { content, file } = this;
    const requests = [...content.asked.splice(0), ...content.waited.splice(0).map((ms) => `pause of ${ms} ms`)];
    const made = [...requests, ...this.problems.splice(0)].map((each) => `[${each}] `).join('');
    if (file === undefined) return made;
    const { window, condition, target, changes, followedTo } = file;
    const { phase, version, bytes } = condition.value;
    const rows =
      textOf(file).length > 100 ? `lines ${window.lineOf(0)} to ${window.lineOf(window.rows.length - 1)}` : '';
    const bars = statesOf(file).map((bar) => `, ${bar}`);
    expect(window.shownBytes).toBeLessThanOrEqual(MAX_BYTES);
    const text = rows === '' ? JSON.stringify(textOf(file)) : `${rows}, ${window.start}..${window.end}`;
    const all = content.versions.get(version ?? '')?.subarray(window.start, window.end);
    if (all !== undefined && rows !== '' && phase !== 'coming' && bars.length === 0)
      expect(textOf(file) === all.toString()).toBe(true);
    const known = `${phase} ${version} of ${bytes}, followed to ${followedTo.value}`;
    return `${made}${text}${bars.join('')}, ${known}, at ${JSON.stringify(target.value)}, change ${changes.value}`;
  }
}

/** A JSON string, so many lines, or two lines of so many states of a progress bar. */
function textFrom(words: readonly string[], from = 0): string {
  const [count = '', kind] = words;
  if (kind === 'lines') return lines(Number(count), from);
  if (kind !== 'states') return JSON.parse(words.join(' ')) as string;
  const states = Array.from({ length: Number(count) }, (_, state) => `\r${String(state).padEnd(89, '.')}`).join('');
  return `Epoch 1${states}\nEpoch 2${states}`;
}

/** The last state of each row that is a progress bar, and whether states before it are counted. */
const statesOf = ({ window }: OpenFile): readonly string[] =>
  window.rows.flatMap(({ bytes }, row) => {
    const states = Buffer.from(bytes).toString().split('\r');
    const { states: folded, hasMore } = window.foldedStates(row);
    const counted = `${hasMore ? 'some' : 'all'} of ${folded + states.length - 1} before it`;
    return states.length > 1 ? [`state ${states.at(-1)?.replaceAll(/\.+\s*$/g, '')}, ${counted}`] : [];
  });

const failureOf = (code: string) =>
  code === '429' ? new RefusedByView(429, { message: 'busy' }, 3_000) : new Error(`no answer ${code}`);

it('an opened content shows and requests after each step what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'open-file.txt'), async (written) => {
    const story = new Story();
    const result: string[] = [];
    for (const step of written.split('; ')) {
      story.do(step.replace(/^& /, ''));
      if (story.file !== undefined && !step.startsWith('& ')) await settled(story.file);
      if (story.file !== undefined) result.push(`${step}: ${story.shown}`);
    }
    return result;
  });
});
