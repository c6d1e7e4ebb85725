/**
 * How a service turns the bytes of a file into text: most decode UTF-8, older ones a single-byte code page
 * (docs/servers.md 1.3). Which of both is identified anew for each file, by what its mirror has or by a question; which
 * code page, no question can tell: only bytes of a mirror can, or the configuration. What one file showed holds for the
 * others, until the agent ends or something says otherwise.
 */
import { JobtailError } from '../../../errors.ts';
import { CodePage, codePagesWith, showsAs } from './encoders.ts';

/** What was learned about a service, kept from start to start. */
export interface HabitStore {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

/** Called with the reason if the service is found to decode files in another way than before. */
type OnDecoderChanged = (reason: string) => void;

/** How characters beyond ASCII are decoded. */
export type Family = 'utf-8' | 'code-page';

const ENCODING_HABIT = 'text-encoding';
const AUTO = 'auto';
const UTF8 = 'utf-8';
/** Between the code pages of a habit that were not told apart yet. */
const OR = ' or ';
/** The code pages that a service may use if nothing else is known of it. */
const KNOWN_CODE_PAGES: readonly string[] = [
  ...[1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((number) => `windows-${number}`),
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16].map((number) => `iso-8859-${number}`),
];

/** No code page that is known has the characters of a text; its raw bytes may still be had. */
export class UnknownCodePage extends JobtailError {}

export class TextEncoding {
  readonly #setting: string;
  readonly #habits: HabitStore;
  readonly #known: readonly string[];
  /** What was identified since this agent started: what was learned before may hold no longer. */
  #identified: readonly string[] = [];

  /** `setting` is service.contentEncoding: auto, utf-8, or the name of a single-byte code page. */
  constructor(setting: string, habits: HabitStore) {
    this.#setting = setting;
    this.#habits = habits;
    const isAnother = setting !== AUTO && setting !== UTF8 && !KNOWN_CODE_PAGES.includes(setting);
    this.#known = isAnother ? [...KNOWN_CODE_PAGES, setting] : KNOWN_CODE_PAGES;
  }

  /** How the last text beyond ASCII was decoded; undefined if none came since the agent started. */
  get family(): Family | undefined {
    const [name] = this.#identified;
    return name === undefined ? undefined : name === UTF8 ? UTF8 : 'code-page';
  }

  /** UTF-8 was identified. @throws JobtailError if the configuration says something else */
  learnUtf8(onChanged?: OnDecoderChanged): void {
    this.#learn([UTF8], onChanged);
  }

  /** The code pages that show `bytes` as the beginning of `text`. */
  codePagesShowing(bytes: Buffer, text: string): string[] {
    return this.#known.filter((name) => showsAs(name, bytes, text));
  }

  /** One of `names` was identified. @throws JobtailError if the configuration says something else */
  learnCodePages(names: readonly string[], onChanged?: OnDecoderChanged): void {
    const still = names.filter((name) => this.#identified.includes(name));
    this.#learn(still.length > 0 ? still : names, onChanged);
  }

  /**
   * The code pages that `text` can be of, less those that are known not to be in use; only some of `among`, where it is
   * the rest of a text. @throws JobtailError if there is none, or the configuration says something else
   */
  codePagesOf(text: string, among: readonly string[] = this.#known): CodePage {
    const able = codePagesWith(text, among);
    // What was identified says nothing any more where the text cannot be of it.
    const inUse = able.filter((name) => this.#identified.includes(name));
    const names = inUse.length > 0 ? inUse : able;
    if (names.length === 0) throw cannotBeTold(names, UnknownCodePage);
    this.#holdAgainstSetting(names);
    return new CodePage(names.includes(this.#setting) ? [this.#setting] : names);
  }

  /** What to say where code pages are left that would give different bytes. */
  undecided({ names }: CodePage): JobtailError {
    return cannotBeTold(names);
  }

  #learn(names: readonly string[], onChanged: OnDecoderChanged = () => {}): void {
    this.#holdAgainstSetting(names);
    const before = this.#identified.length > 0 ? this.#identified : this.#learnedBefore;
    this.#identified = names;
    if (before.length > 0 && !names.some((name) => before.includes(name)))
      onChanged(`the service decoded files as ${shownNames(before)}, and decodes them as ${shownNames(names)} now`);
    const habit = names.join(OR);
    if (this.#habits.get(ENCODING_HABIT) !== habit) this.#habits.set(ENCODING_HABIT, habit);
  }

  /** What an earlier start identified. */
  get #learnedBefore(): readonly string[] {
    return this.#habits.get(ENCODING_HABIT)?.split(OR) ?? [];
  }

  #holdAgainstSetting(names: readonly string[]): void {
    if (this.#setting === AUTO || names.includes(this.#setting)) return;
    const found = names.join(OR);
    throw new JobtailError('unexpected-answer', `the service decodes files as ${found}, not as ${this.#setting}`, {
      hint: `set service.contentEncoding to auto or to ${found}`,
    });
  }
}

const shownNames = ([first = '', ...more]: readonly string[]) =>
  more.length === 0 ? first : 'a single-byte code page';

function cannotBeTold(names: readonly string[], Kind = JobtailError): JobtailError {
  const which = names.length === 0 ? 'that is none of those known' : `that cannot be told: ${names.join(OR)}`;
  return new Kind('unexpected-answer', `the service decodes files with a single-byte code page ${which}`, {
    hint: `set service.contentEncoding to the code page of the server, for example ${names[0] ?? 'windows-1250'}`,
  });
}
