/** A result that is no text: its size, and its first bytes as a hex dump. */
import { SCROLLED_BY_KEYS } from '../parts/hooks.ts';
import { decode } from '../text/terminal.ts';
import { bytes as inUnits } from '../text/units.ts';

export const DUMPED_BYTES = 4 * 1024;
const ROW_BYTES = 16;
/** A text in an older encoding has fewer bytes that are none of UTF-8. */
const MAX_WRONG_SHARE = 0.3;

/** Whether bytes at the beginning of a file are those of no text: as git has it, or mostly none of UTF-8. */
export function isBinary(beginning: Uint8Array): boolean {
  if (beginning.includes(0)) return true;
  const wrong = decode(beginning).split('\ufffd').length - 1;
  return wrong > MAX_WRONG_SHARE * beginning.length;
}

/** As `hexdump -C` writes them. */
export function hexDump(bytes: Uint8Array): string {
  const hex = (number: number, digits: number) => number.toString(16).padStart(digits, '0');
  const rows = Array.from({ length: Math.ceil(bytes.length / ROW_BYTES) }, (_, row) => {
    const part = [...bytes.subarray(row * ROW_BYTES, (row + 1) * ROW_BYTES)];
    const half = (from: number) =>
      part
        .slice(from, from + 8)
        .map((byte) => hex(byte, 2))
        .join(' ')
        .padEnd(23);
    const text = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    return `${hex(row * ROW_BYTES, 8)}  ${half(0)}  ${half(8)}  |${text}|`;
  });
  return rows.join('\n');
}

interface BinaryProps {
  readonly beginning: Uint8Array;
  readonly bytes: number | null;
  readonly onText: () => void;
}

export function Binary({ beginning, bytes, onText }: BinaryProps) {
  const size = inUnits(bytes ?? beginning.length);
  const isWhole = bytes === null || bytes <= beginning.length;
  return (
    <>
      <p class="notice plain">
        Binary, {size}.{!isWhole && ` The first ${inUnits(beginning.length)}:`}
        <button type="button" class="button" onClick={onText}>
          Show as text
        </button>
      </p>
      <pre class="dump scrolls" {...SCROLLED_BY_KEYS}>
        {hexDump(beginning)}
      </pre>
    </>
  );
}
