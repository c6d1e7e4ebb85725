/**
 * Content of generated files. Each generation has a letter of its own, which stands at its beginning and then every
 * few bytes: two generations never agree over a whole overlap, so what the overlap cannot tell by its nature (a file
 * rewritten with the very bytes that stand at the end of the mirror) does not come up.
 */
import fc from 'fast-check';

const TEXT = ['0', ' ', '\n', '\r\n', '\0', '\x1b[3;1~', 'é', 'ř', '€', '日', '𝄞', '1\u0301'];
const MARKS = ['\ufeff', '\ufffd'];
const INVALID = 'ff fe fffe feff c3 e282 80 b9 e9 f09f98 c080 eda080 efbb efbf'.split(' ');

const asBytes = (texts: readonly string[]) => texts.map((text) => Buffer.from(text));

/** Characters only. */
export const TEXT_ATOMS: readonly Buffer[] = asBytes(TEXT);
/** Everything a file can hold. */
export const ALL_ATOMS: readonly Buffer[] = [
  ...TEXT_ATOMS,
  ...asBytes(MARKS),
  ...INVALID.map((hex) => Buffer.from(hex, 'hex')),
];

/** Atoms by number, each several times. */
export type Piece = readonly { readonly atom: number; readonly times: number }[];

const run = fc.record({
  atom: fc.nat(ALL_ATOMS.length - 1),
  times: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) }, fc.integer({ min: 1, max: 700 })),
});
export const piece: fc.Arbitrary<Piece> = fc.array(run, { minLength: 1, maxLength: 6 });

/** The bytes of a piece; `letter` stands before it, and again at most `everyBytes` later. */
export function bytesOf(
  what: Piece,
  { letter, atoms, everyBytes }: { letter: string; atoms: readonly Buffer[]; everyBytes: number },
): Buffer {
  const mark = Buffer.from(letter);
  const out: Buffer[] = [mark];
  let since = 0;
  for (const { atom, times } of what) {
    const bytes = atoms[atom % atoms.length] ?? mark;
    for (let time = 0; time < times; time++) {
      if (since + bytes.length > everyBytes) {
        out.push(mark);
        since = 0;
      }
      out.push(bytes);
      since += bytes.length;
    }
  }
  return Buffer.concat(out);
}
