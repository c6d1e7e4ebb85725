/**
 * How a server decodes the bytes of a file: most decode UTF-8, older ones a single-byte code page (docs/servers.md
 * 1.3). The family is identified for each file anew, by its mirror or by a request (explain.ts). The code page can only
 * be identified by bytes of a mirror, or set in the configuration. It counts for the other files, until the agent exits
 * or a response contradicts it. If several code pages are possible, a character is certain where all of them have the
 * same byte for it.
 */
import iconv from 'iconv-lite';
import { JobtailError } from '../../../errors.ts';
import type { CapabilityStore } from '../../ports.ts';

/** The family of decoders for non-ASCII characters. */
export type Family = 'utf-8' | 'code-page';

const ENCODING_CAPABILITY = 'text-encoding';
const AUTO = 'auto';
export const UTF8 = 'utf-8';
/** Separates the possible code pages in the stored value. */
const OR = ' or ';
/** The code pages that a server may use by default. */
const KNOWN_CODE_PAGES: readonly string[] = [
  ...[1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((number) => `windows-${number}`),
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16].map((number) => `iso-8859-${number}`),
];

const BYTES = 256;
const ASCII_BYTES = 128;

/** No known code page has all characters of a text; a raw download may still succeed. */
export class UnknownCodePage extends JobtailError {}

export class TextEncoding {
  readonly #setting: string;
  readonly #capabilities: CapabilityStore;
  readonly #known: readonly string[];
  /** Identified since this agent started: a stored value may be outdated. */
  #identified: readonly string[] = [];

  /** `setting` is service.contentEncoding: auto, utf-8, or the name of a single-byte code page. */
  constructor(setting: string, capabilities: CapabilityStore) {
    this.#setting = setting;
    this.#capabilities = capabilities;
    const isAnother = setting !== AUTO && setting !== UTF8 && !KNOWN_CODE_PAGES.includes(setting);
    this.#known = isAnother ? [...KNOWN_CODE_PAGES, setting] : KNOWN_CODE_PAGES;
  }

  /** The family of the last non-ASCII text; undefined if there was none since the agent started. */
  get family(): Family | undefined {
    const [name] = this.#identified;
    return name === undefined ? undefined : name === UTF8 ? UTF8 : 'code-page';
  }

  /** The code pages that decode `bytes` to the start of `text`. */
  codePagesShowing(bytes: Buffer, text: string): string[] {
    return this.#known.filter((name) => showsAs(name, bytes, text));
  }

  /** Records that one of `found` was identified. @throws JobtailError if the configuration sets another encoding */
  learn(found: readonly string[], onChanged: (reason: string) => void = () => {}): void {
    const still = found.filter((name) => this.#identified.includes(name));
    const names = still.length > 0 ? still : found;
    this.#compareWithSetting(names);
    const stored = this.#capabilities.get(ENCODING_CAPABILITY);
    const before = this.#identified.length > 0 ? this.#identified : (stored?.split(OR) ?? []);
    this.#identified = names;
    if (before.length > 0 && !names.some((name) => before.includes(name)))
      onChanged(`the service decoded files as ${shownNames(before)} before, and as ${shownNames(names)} now`);
    if (stored !== names.join(OR)) this.#capabilities.set(ENCODING_CAPABILITY, names.join(OR));
  }

  /**
   * The possible code pages of `text`, without those that were excluded before; a subset of `among`, for the rest of a
   * text. @throws JobtailError if there is none, or the configuration sets another encoding
   */
  codePagesOf(text: string, among: readonly string[] = this.#known): CodePage {
    const able = codePagesWith(text, among);
    // A text without a match among the identified code pages disproves these.
    const inUse = able.filter((name) => this.#identified.includes(name));
    const names = inUse.length > 0 ? inUse : able;
    if (names.length === 0) throw unidentified(names, UnknownCodePage);
    this.#compareWithSetting(names);
    return new CodePage(names.includes(this.#setting) ? [this.#setting] : names);
  }

  #compareWithSetting(names: readonly string[]): void {
    if (this.#setting === AUTO || names.includes(this.#setting)) return;
    const found = names.join(OR);
    throw new JobtailError('unexpected-answer', `the service decodes files as ${found}, not as ${this.#setting}`, {
      hint: `set service.contentEncoding to auto or to ${found}`,
    });
  }
}

const shownNames = ([first = '', ...more]: readonly string[]) =>
  more.length === 0 ? first : 'a single-byte code page';

/** The error for code pages that give different bytes, or for a text that none of them has. */
export function unidentified(names: readonly string[], Kind = JobtailError): JobtailError {
  const which = names.length === 0 ? 'that is unknown' : `that is ambiguous: ${names.join(OR)}`;
  return new Kind('unexpected-answer', `the service decodes files with a single-byte code page ${which}`, {
    hint: `set service.contentEncoding to the code page of the server, for example ${names[0] ?? 'windows-1250'}`,
  });
}

/** The possible code pages: one, or several as long as the text does not distinguish them. */
export class CodePage {
  readonly names: readonly string[];
  readonly #tables: readonly Table[];

  /** @throws RangeError if one of `names` is no single-byte encoding */
  constructor(names: readonly string[]) {
    this.names = names;
    this.#tables = names.map(tableOf);
  }

  /** The bytes of `text` up to the first uncertain character. */
  encode(text: string): Buffer {
    const bytes = Buffer.allocUnsafe(text.length);
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      const byte = unit < ASCII_BYTES ? unit : this.#tables[0]?.get(unit);
      const agree = unit < ASCII_BYTES || this.#tables.every((table) => table.get(unit) === byte);
      if (byte === undefined || !agree) return bytes.subarray(0, index);
      bytes[index] = byte;
    }
    return bytes;
  }
}

/** The code pages among `names` that have all characters of `text`. */
export function codePagesWith(text: string, names: readonly string[]): string[] {
  const units = new Set<number>();
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= ASCII_BYTES) units.add(unit);
  }
  return names.filter((name) => {
    const table = tableOf(name);
    return [...units].every((unit) => table.has(unit));
  });
}

/** Whether the code page decodes `bytes` to `text`, compared over the shorter length. */
function showsAs(name: string, bytes: Buffer, text: string): boolean {
  const table = tableOf(name);
  const length = Math.min(bytes.length, text.length);
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index);
    if ((unit < ASCII_BYTES ? unit : table.get(unit)) !== bytes[index]) return false;
  }
  return true;
}

/** The byte of each non-ASCII character. */
type Table = ReadonlyMap<number, number>;

const tables = new Map<string, Table>();

function tableOf(name: string): Table {
  const known = tables.get(name);
  if (known !== undefined) return known;
  const bytes = Buffer.from(Array.from({ length: BYTES }, (_, byte) => byte));
  const characters = iconv.encodingExists(name) ? iconv.decode(bytes, name) : '';
  const isAsciiFirst = characters.startsWith(bytes.toString('latin1', 0, ASCII_BYTES));
  if (characters.length !== BYTES || !isAsciiFirst) throw new RangeError(`${name} is no single-byte code page`);
  const table = new Map<number, number>();
  for (let byte = ASCII_BYTES; byte < BYTES; byte++) {
    const unit = characters.charCodeAt(byte);
    // As in .NET, a byte that the code page leaves undefined is the control character of the same number.
    table.set(unit === 0xfffd ? byte : unit, byte);
  }
  tables.set(name, table);
  return table;
}
