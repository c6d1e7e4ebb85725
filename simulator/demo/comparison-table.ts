/** The end of the demo as a table: every file on both sides. */
import path from 'node:path';
import { fitted, pc } from '../../src/cli/show/terminal.ts';
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
const SHOWN_DIGITS = 12;

interface Row {
  readonly name: string;
  readonly bytes: number;
  readonly cluster: string | null;
  readonly mirror: string | null;
  readonly equal: boolean;
}

export const TABLE_NOTE = `"cluster" and "here" are the sha256 of both sides (${SHOWN_DIGITS} of 64 digits are shown, all were compared).`;

export function comparisonTable({ files }: Comparison, { columns, all }: TableOptions): string {
  const rows = all || files.length <= MAX_ROWS ? files : foldSmall(files);
  const cells = rows.map(({ name, bytes, cluster, mirror, equal }) => [
    printable(name),
    showCount(bytes),
    (cluster ?? '-').slice(0, SHOWN_DIGITS),
    (mirror ?? '-').slice(0, SHOWN_DIGITS),
    equal ? pc.green('yes') : pc.red('NO'),
  ]);
  const head = ['file', 'bytes', 'cluster', 'here', 'equal'];
  return fitted({ head, rows: cells, numbers: ['bytes'] }, columns).join('\n');
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
