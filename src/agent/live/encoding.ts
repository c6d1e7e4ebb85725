/**
 * How a service turns the bytes of a file into text: most decode UTF-8, older ones a single-byte code page, and some
 * swallow a byte-order mark at the offset (field notes 1). It is the same for all files, so what was learned from one
 * holds for the others, and is kept.
 */
import { JobtailError } from '../../errors.ts';
import type { Content } from '../ports.ts';
import { CodePage } from './code-page.ts';
import { CodePageReading, type Reading, Utf8Reading } from './reading.ts';

/** What was learned about a service, kept from start to start. */
export interface HabitStore {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

const ENCODING_HABIT = 'text-encoding';
const MARK_HABIT = 'byte-order-mark';
const UTF8 = 'utf-8';
/** Between the code pages of a habit that were not told apart yet. */
const OR = ' or ';
/** The code pages that old servers are known to use, most likely first. */
const KNOWN_CODE_PAGES = ['windows-1250', 'windows-1252', 'windows-1251', 'windows-1253', 'windows-1254'];

export class TextEncoding {
  readonly #setting: string;
  readonly #habits: HabitStore;
  #codePage: CodePage | undefined;
  #proven = false;

  /** `setting` is service.contentEncoding: auto, utf-8, or the name of a single-byte code page. */
  constructor(setting: string, habits: HabitStore) {
    this.#setting = setting;
    this.#habits = habits;
    const names = setting === 'auto' ? habits.get(ENCODING_HABIT) : setting;
    if (names !== undefined && names !== UTF8) this.#codePage = new CodePage(names.split(OR));
  }

  /** Whether it was proven since this agent started: what was learned before may hold no longer. */
  get proven(): boolean {
    return this.#proven;
  }

  /** The code page in use; undefined for UTF-8. */
  get codePage(): CodePage | undefined {
    return this.#codePage;
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

  /** Asks for a proof again: a file differs from its mirror, perhaps for the service decodes in another way by now. */
  doubt(): void {
    this.#proven = false;
  }

  learnUtf8(): void {
    this.#learn([UTF8]);
  }

  /** Learns from text that a code page brought about; throws if it cannot be told which one. */
  learnCodePage(text: string): void {
    const fits = (name: string) => isWhole(new CodePage([name]), text);
    const isSet = this.#setting !== 'auto' && this.#setting !== UTF8;
    const fitting = isSet && fits(this.#setting) ? [this.#setting] : KNOWN_CODE_PAGES.filter(fits);
    // All text before was common to those that are in use.
    const inUse = fitting.filter((name) => this.#codePage?.names.includes(name));
    const names = inUse.length > 0 ? inUse : fitting;
    if (names.length === 0 || !isWhole(new CodePage(names), text)) throw cannotBeTold(names);
    this.#learn(names);
  }

  /** Throws if the configuration says something else. */
  #learn(names: readonly string[]): void {
    if (this.#setting !== 'auto' && !names.includes(this.#setting)) {
      const found = names.join(OR);
      throw new JobtailError('unexpected-answer', `the service decodes files as ${found}, not as ${this.#setting}`, {
        hint: `set service.contentEncoding to auto or to ${found}`,
      });
    }
    this.#codePage = names[0] === UTF8 ? undefined : new CodePage(names);
    this.#proven = true;
    this.#habits.set(ENCODING_HABIT, names.join(OR));
  }
}

const isWhole = (codePage: CodePage, text: string) => codePage.encode(text).length === text.length;

function cannotBeTold(names: readonly string[]): JobtailError {
  const which = names.length === 0 ? 'that is none of those known' : `that cannot be told: ${names.join(OR)}`;
  return new JobtailError('unexpected-answer', `the service decodes files with a single-byte code page ${which}`, {
    hint: `set service.contentEncoding to the code page of the server, for example ${KNOWN_CODE_PAGES[0]}`,
  });
}
