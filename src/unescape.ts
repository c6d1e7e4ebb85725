/** What a text is without its escapes. */

/** A text, and of each of its units where in the original it begins and ends. */
export interface Reading {
  readonly text: string;
  readonly from: readonly number[];
  readonly to: readonly number[];
}

export function asWritten(text: string): Reading {
  const from = Array.from({ length: text.length }, (_, at) => at);
  return { text, from, to: from.map((at) => at + 1) };
}

const ESCAPE =
  /(?:%[0-9a-f]{2})+|(?:\\x[0-9a-f]{2})+|&#x([0-9a-f]{1,6});|&#([0-9]{1,7});|&(amp|lt|gt|quot|apos);|\\u([0-9a-f]{4})|\\u\{([0-9a-f]{1,6})\}|\\([\s\S])/gi;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' };

/** The text as it is meant: escapes of URLs, XML, JSON and programming languages, in any mixture. */
export function withoutEscapes(reading: Reading): Reading {
  const { text, from, to } = reading;
  let meant = '';
  const starts: number[] = [];
  const ends: number[] = [];
  /** `unit` stands for [start, end) of the text. */
  const put = (units: string, start: number, end: number) => {
    meant += units;
    for (let count = 0; count < units.length; count++) {
      starts.push(from[start] ?? 0);
      ends.push(to[end - 1] ?? 0);
    }
  };
  const copy = (start: number, end: number) => {
    for (let at = start; at < end; at++) put(text.charAt(at), at, at + 1);
  };
  let at = 0;
  for (const found of text.matchAll(ESCAPE)) {
    const [written] = found;
    const { index } = found;
    copy(at, index);
    at = index + written.length;
    const bytes = bytesOf(written);
    if (bytes === undefined) put(meaningOf(found), index, at);
    else {
      const width = written.length / bytes.length;
      const decoded = bytes.toString();
      const isUtf8 = !decoded.includes('\uFFFD');
      let start = index;
      for (const character of isUtf8 ? decoded : bytes.toString('latin1')) {
        const end = start + width * (isUtf8 ? Buffer.byteLength(character) : 1);
        put(character, start, end);
        start = end;
      }
    }
  }
  if (at === 0) return reading;
  copy(at, text.length);
  return { text: meant, from: starts, to: ends };
}

/** The bytes of `%41%42` and `\x41\x42`. */
function bytesOf(written: string): Buffer | undefined {
  if (written.startsWith('%')) return Buffer.from(written.replaceAll('%', ''), 'hex');
  return /^\\x[0-9a-f]{2}/i.test(written) ? Buffer.from(written.replaceAll(/\\x/gi, ''), 'hex') : undefined;
}

function meaningOf([written, hex, decimal, entity, unit, point, character]: RegExpMatchArray): string {
  if (entity !== undefined) return ENTITIES[entity.toLowerCase()] ?? written;
  if (character !== undefined) return CONTROLS[character] ?? character;
  const number = decimal === undefined ? Number.parseInt(hex ?? unit ?? point ?? '', 16) : Number(decimal);
  if (unit !== undefined) return String.fromCharCode(number);
  return number <= 0x10ffff ? String.fromCodePoint(number) : written;
}
