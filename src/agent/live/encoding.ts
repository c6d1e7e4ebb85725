/**
 * How a service turned the bytes of a file into text, and the proof of it. Most decode UTF-8; older ones a single-byte
 * code page; some swallow a byte-order mark at the offset (field notes 1). Offsets count bytes, so a wrong guess would
 * let the mirror drift: before the first text that could tell, the service is asked from where the guess says the text
 * ends, and has to answer with that end.
 */
import { isAscii } from 'node:buffer';
import { characterStart, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../chunk.ts';
import { JobtailError } from '../../errors.ts';
import type { Content } from '../ports.ts';
import type { Follow } from './follow.ts';
import { CodePage, CodePageReading, type Reading, Utf8Reading } from './reading.ts';

/** What was learned about a service, kept from start to start. */
export interface HabitStore {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

const ENCODING_HABIT = 'text-encoding';
const MARK_HABIT = 'byte-order-mark';
/** The code pages that old servers are known to use, most likely first. */
const KNOWN_CODE_PAGES = ['windows-1250', 'windows-1252', 'windows-1251', 'windows-1253', 'windows-1254'];

export class TextEncoding {
  readonly #setting: string;
  readonly #habits: HabitStore;
  #codePage: CodePage | undefined;

  /** `setting` is service.contentEncoding: auto, utf-8, or the name of a single-byte code page. */
  constructor(setting: string, habits: HabitStore) {
    this.#setting = setting;
    this.#habits = habits;
    const name = setting === 'auto' ? habits.get(ENCODING_HABIT) : setting;
    if (name !== undefined && name !== 'utf-8') this.#codePage = new CodePage(name);
  }

  /** Whether the encoding in use was proven on text with characters beyond ASCII. */
  get proven(): boolean {
    const habit = this.#habits.get(ENCODING_HABIT);
    return habit !== undefined && (this.#setting === 'auto' || habit === this.#setting);
  }

  get usesCodePage(): boolean {
    return this.#codePage !== undefined;
  }

  /** The same text, read by the rule that was learned meanwhile. */
  turned(reading: Reading): Reading {
    return this.#codePage === undefined ? reading : reading.asCodePage(this.#codePage);
  }

  /** Whether the service is known to hand out byte-order marks like any other character. */
  get keepsMark(): boolean {
    return this.#codePage !== undefined || this.#habits.get(MARK_HABIT) === 'kept';
  }

  reading(content: Content): Reading {
    return this.#codePage === undefined ? new Utf8Reading(content) : new CodePageReading(content, this.#codePage);
  }

  learnMark(habit: 'kept' | 'swallowed'): void {
    this.#habits.set(MARK_HABIT, habit);
  }

  /** Keeps a proven encoding; throws if the configuration says another one. */
  learn(encoding: string): void {
    if (this.#setting !== 'auto' && this.#setting !== encoding) {
      throw new JobtailError('unexpected-answer', `the service decodes files as ${encoding}, not as ${this.#setting}`, {
        hint: `set service.contentEncoding to auto or to ${encoding}`,
      });
    }
    this.#codePage = encoding === 'utf-8' ? undefined : new CodePage(encoding);
    this.#habits.set(ENCODING_HABIT, encoding);
  }

  /** The encodings that may be tried for text that is not the one in use. */
  get candidates(): readonly string[] {
    return this.#setting === 'auto' ? KNOWN_CODE_PAGES : [this.#setting, 'utf-8', ...KNOWN_CODE_PAGES];
  }
}

const WINDOW_BYTES = 64 * 1024;

/**
 * Proves that the certain bytes from where `reading` stands may be appended behind `position`; the reading to append
 * instead if the service turned out to use a code page; `again` if the file changed while it was looked at.
 *
 * The service is asked from one byte behind the beginning of a character beyond ASCII: decoded as UTF-8 the rest of the
 * character comes back as U+FFFD; decoded with a code page there is no rest.
 */
export async function* proveEncoding(
  position: number,
  reading: Reading,
  encoding: TextEncoding,
): Follow<Reading | 'again'> {
  if (encoding.proven || encoding.usesCodePage) return reading;
  const last = await lastBeyondAscii(reading);
  if (last === 'none') return reading;
  if (last === 'utf-8') {
    encoding.learn('utf-8');
    return reading;
  }
  if (yield* restIsReplaced(position + last.bytesBefore + 1, last)) {
    encoding.learn('utf-8');
    return reading;
  }
  const behind = yield position + last.charactersBefore + 1;
  if (behind === undefined) return 'again';
  const rest = await behind.content.read(0, WINDOW_BYTES);
  if (!startsAlike(rest, last.behind) || standsAt(rest, 0, REPLACEMENT)) return 'again';
  encoding.learn(codePageOf(last.text, encoding.candidates));
  return encoding.turned(reading);
}

/** The last character beyond ASCII among the certain bytes. */
interface BeyondAscii {
  readonly bytesBefore: number;
  readonly charactersBefore: number;
  /** The certain bytes behind it, as far as they were looked at. */
  readonly behind: Buffer;
  /** Text around it, to tell one code page from another. */
  readonly text: string;
}

/** `utf-8`: the text holds a U+FFFD or a character beyond the first 65,536, which no code page brings about. */
async function lastBeyondAscii(reading: Reading): Promise<BeyondAscii | 'none' | 'utf-8'> {
  const probe = reading.fork();
  let found: BeyondAscii | 'none' = 'none';
  let bytes = 0;
  let characters = 0;
  for (;;) {
    const window = wholeCharacters(await probe.peek(WINDOW_BYTES));
    if (window.length === 0) return probe.atEnd() ? found : 'utf-8';
    const text = window.toString('utf8');
    if (!isAscii(window)) {
      const index = lastIndexBeyondAscii(text);
      if (isSurrogate(text.charCodeAt(index))) return 'utf-8';
      const before = Buffer.byteLength(text.slice(0, index));
      const width = Buffer.byteLength(text.charAt(index));
      const behind = window.subarray(before + width);
      found = { bytesBefore: bytes + before, charactersBefore: characters + index, behind, text };
    }
    probe.advance(window.length);
    bytes += window.length;
    characters += text.length;
  }
}

function wholeCharacters(window: Buffer): Buffer {
  if (window.length === 0) return window;
  const last = characterStart(window, window.length - 1);
  return last + widthOfLead(window[last] ?? 0) > window.length ? window.subarray(0, last) : window;
}

function lastIndexBeyondAscii(text: string): number {
  let index = text.length - 1;
  while (index > 0 && text.charCodeAt(index) < 0x80) index--;
  return index;
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff;

async function* restIsReplaced(offset: number, last: BeyondAscii): Follow<boolean> {
  const part = yield offset;
  if (part === undefined) return false;
  const text = await part.content.read(0, WINDOW_BYTES);
  if (!standsAt(text, 0, REPLACEMENT)) return false;
  let skipped = 0;
  while (standsAt(text, skipped, REPLACEMENT)) skipped += REPLACEMENT.length;
  return startsAlike(text.subarray(skipped), last.behind);
}

/** The one code page that has all characters of `text`; throws if none has, or several that differ on it. */
function codePageOf(text: string, candidates: readonly string[]): string {
  const fitting = candidates
    .filter((name) => name !== 'utf-8')
    .map((name) => ({ name, bytes: new CodePage(name).encode(text) }))
    .filter(({ bytes }) => bytes.length === text.length);
  const [first, ...others] = fitting;
  if (first !== undefined && others.every(({ bytes }) => bytes.equals(first.bytes))) return first.name;
  throw new JobtailError(
    'unexpected-answer',
    'the service decodes files with a single-byte code page that cannot be told',
    {
      hint: `set service.contentEncoding to the code page of the server, for example ${KNOWN_CODE_PAGES[0]}`,
    },
  );
}
