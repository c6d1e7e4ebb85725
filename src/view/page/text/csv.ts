/** Values that commas, semicolons or tabs divide (RFC 4180, and what spreadsheets make of it). */

const DIVIDERS = [',', ';', '\t'];

/** The rows of a text; the divider is the one that the first row has most of. */
export function csvRows(text: string): string[][] {
  const [first = ''] = text.split('\n', 1);
  const [divider = ','] = [...DIVIDERS].sort((a, b) => first.split(b).length - first.split(a).length);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  const endCell = () => {
    row.push(cell);
    cell = '';
  };
  const endRow = () => {
    endCell();
    rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"' && cell === '') {
      const end = quoteEnd(text, at + 1);
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end;
    } else if (character === divider) endCell();
    else if (character === '\n') endRow();
    else if (character !== '\r') cell += character;
  }
  if (cell !== '' || row.length > 0) endRow();
  return rows;
}

/** Where a quoted value ends: at a quote that is no pair; at the end of the text if there is none. */
function quoteEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2)) if (text[at + 1] !== '"') return at;
  return text.length;
}
