/** The comparison of both sides as a table for people. */
import path from 'node:path';
import stringWidth from 'string-width';
import { pc } from '../../src/cli/show/colours.ts';
import { cutToColumns } from '../../src/cli/show/terminal.ts';
import { showCount } from '../../src/numbers.ts';
import { printable } from '../../src/printable.ts';
import type { ComparedFile, Comparison } from './comparison.ts';

interface TableOptions {
  /** Columns of the terminal. */
  readonly columns: number;
  /** Every result gets a row of its own, however many there are. */
  readonly all: boolean;
}

/** More rows than this are not read any more. */
const MAX_ROWS = 30;
const SMALL_FILE_BYTES = 1024 * 1024;
const DIGEST_DIGITS = 64;
const MIN_DIGITS = 10;
const MIN_NAME_COLUMNS = 16;
const GAP = '  ';

interface Row {
  readonly name: string;
  readonly bytes: number;
  readonly cluster: string | null;
  readonly mirror: string | null;
  readonly equal: boolean;
}

/** The table, in lines that are no wider than the terminal, and what is to be known of it. */
export function comparisonTable({ files }: Comparison, { columns, all }: TableOptions) {
  const rows = all || files.length <= MAX_ROWS ? files : foldSmall(files);
  const bytes = rows.map((row) => showCount(row.bytes));
  const bytesColumns = Math.max('bytes'.length, ...bytes.map((text) => text.length));
  const rest = columns - bytesColumns - 'equal'.length - 4 * GAP.length;
  const names = rows.map((row) => printable(row.name));
  const nameColumns = Math.max(
    MIN_NAME_COLUMNS,
    Math.min(Math.max(...names.map((name) => stringWidth(name))), rest - 2 * MIN_DIGITS),
  );
  const digits = Math.max(MIN_DIGITS, Math.min(DIGEST_DIGITS, Math.floor((rest - nameColumns) / 2)));
  const cells = rows.map((row, index) => [
    shorten(names[index] ?? '', nameColumns),
    (bytes[index] ?? '').padStart(bytesColumns),
    (row.cluster ?? '-').slice(0, digits),
    (row.mirror ?? '-').slice(0, digits),
    row.equal ? pc.green('yes') : pc.red('NO'),
  ]);
  const head = ['file', 'bytes'.padStart(bytesColumns), 'cluster', 'here', 'equal'].map((title) => pc.bold(title));
  return { lines: inColumns([head, ...cells]), note: noteOn(digits) };
}

/** Rows whose cells begin below those of the row above. */
function inColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => stringWidth(row[column] ?? ''))));
  const padded = (cell: string, column: number) => cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell));
  return rows.map((row) => row.map(padded).join(GAP).trimEnd()).join('\n');
}

function noteOn(digits: number): string {
  const cut = digits < DIGEST_DIGITS ? ` (${digits} of ${DIGEST_DIGITS} digits are shown, all were compared)` : '';
  return `"cluster" and "here" are the sha256 of both sides${cut}.`;
}

/** What differs, in words; one line a file. */
export function differences({ files }: Comparison): string[] {
  return files
    .filter((file) => !file.equal)
    .map((file) => {
      const name = printable(file.name);
      if (file.mirror === null) return `${name}: it is missing here`;
      if (file.cluster === null) return `${name}: the cluster has no such file`;
      return `${name}: its bytes differ`;
    });
}

/** The small results of a directory that are equal become one row, where there are several. */
function foldSmall(files: readonly ComparedFile[]): Row[] {
  const folds = new Map<string, ComparedFile[]>();
  for (const file of files) {
    const folded = file.equal && !file.live && file.bytes < SMALL_FILE_BYTES;
    const key = folded ? `${path.posix.dirname(file.name)}/` : file.name;
    folds.set(key, [...(folds.get(key) ?? []), file]);
  }
  return [...folds].flatMap(([directory, folded]): readonly Row[] => {
    if (folded.length === 1) return folded;
    const bytes = folded.reduce((sum, file) => sum + file.bytes, 0);
    const several = `${folded.length} files`;
    return [{ name: directory, bytes, cluster: several, mirror: several, equal: true }];
  });
}

/** A name cut in its middle: its end is the most specific part. */
function shorten(name: string, maxColumns: number): string {
  if (stringWidth(name) <= maxColumns) return name;
  const [first = '', ...others] = name.split('/');
  for (let dropped = 1; dropped < others.length; dropped++) {
    const short = [first, '…', ...others.slice(dropped)].join('/');
    if (stringWidth(short) <= maxColumns) return short;
  }
  return cutToColumns(name, maxColumns);
}
