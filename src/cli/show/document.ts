/** A page of the documents on a terminal: Markdown as wrapped text and tables, through a pager. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import stringWidth from 'string-width';
import { pc } from './colours.ts';
import { columnsOf, fitted, wrapToColumns } from './terminal.ts';

/** Longer lines of prose are tiring to read; tables may be wider. */
const MAX_PROSE_COLUMNS = 100;
const CODE = /^ *```[\s\S]*?^ *```$/m;
const BLOCK =
  /^ *```[\s\S]*?^ *```$|^\|(?:.*\n\|)*.*$|^#.*$|^(?: *(?:[-*]|\d+\.) )?.+(?:\n(?! *(?:[-*]|\d+\.) | *```|\||#).+)*/gm;

/** Code, bold text and links without their marks; an image is its description. */
function plain(markdown: string): string {
  return markdown.replaceAll(
    /`([^`]+)`|\*\*(.+?)\*\*|!?\[((?:[^\]`]|`[^`]*`)*)\]\([^)]*\)|(?<!\w)\*([^*]+)\*/g,
    (_, code, bold, link, italic) => code ?? (bold === undefined ? plain(link ?? italic) : pc.bold(plain(bold))),
  );
}

const cellsOf = (row: string) =>
  row
    .replace(/^\| ?| *\|$/g, '')
    .split(/ ?(?<!\\)\| ?/)
    .map((cell) => plain(cell.replaceAll('\\|', '|')));

function linesOf(block: string, columns: number): readonly string[] {
  if (CODE.test(block))
    return block
      .split('\n')
      .slice(1, -1)
      .map((line) => `    ${line}`);
  if (block.startsWith('#')) return [pc.bold(plain(block.replace(/^#+ /, '')).toUpperCase())];
  if (block.startsWith('|')) {
    const [head = [], , ...rows] = block.split('\n').map(cellsOf);
    const lines = fitted({ head, rows }, columns);
    if (lines.every((line) => stringWidth(line) <= columns)) return lines;
    return rows.flatMap(([first = '', ...cells]) => [
      ...wrapToColumns(first, columns, 2).map((line) => pc.bold(line)),
      ...cells.filter((cell) => cell !== '').flatMap((cell) => wrapToColumns(`  ${cell}`, columns)),
    ]);
  }
  const [, mark = ''] = /^ *((?:[-*]|\d+\.) )?/.exec(block) ?? [];
  return wrapToColumns(plain(block.replaceAll(/\n */g, ' ')), Math.min(columns, MAX_PROSE_COLUMNS), mark.length);
}

/** Items of a list, and a table below its heading, follow each other without an empty line, as they are written. */
export function documentText(markdown: string, columns = columnsOf()): string {
  let end = 0;
  const blocks = markdown.match(BLOCK) ?? [];
  const parts = blocks.map((block) => {
    const at = markdown.indexOf(block, end);
    const isApart = markdown.slice(end, at).includes('\n\n');
    end = at + block.length;
    return `${isApart ? '\n' : ''}${linesOf(block, columns).join('\n')}\n`;
  });
  return parts.join('');
}

/** Writes a long text by `$PAGER` (by default less) if a person reads it, else, and where there is no pager, as it is. */
export async function writePaged(text: string): Promise<void> {
  const { PAGER = 'less', LESS = 'FRX' } = process.env;
  if (!process.stdout.isTTY || PAGER === '' || PAGER === 'cat') return void process.stdout.write(text);
  const pager = spawn(PAGER, { shell: true, stdio: ['pipe', 'inherit', 'ignore'], env: { ...process.env, LESS } });
  // A reader who leaves early closes the pipe.
  pager.stdin.on('error', () => {});
  pager.stdin.end(text);
  // Ctrl-C is for the pager, which would lose its terminal.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  const [code] = await once(pager, 'close').finally(() => process.off('SIGINT', ignore));
  // The shell finds no such program.
  if (code === 126 || code === 127) process.stdout.write(text);
}
