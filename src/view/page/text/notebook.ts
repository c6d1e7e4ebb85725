/** The cells of a Jupyter notebook (nbformat 4), as text. */

export interface NotebookCell {
  /** `In [3]`, `text`, or another kind of cell. */
  readonly label: string;
  readonly source: string;
  /** What was printed; a note in place of an output that is no text. */
  readonly outputs: readonly string[];
}

export const MAX_NOTEBOOK_BYTES = 8 * 1024 * 1024;
const MAX_CELLS = 2_000;

/** Undefined if the text is no notebook. */
export function cellsOf(text: string): NotebookCell[] | undefined {
  const cells = listIn(parsed(text), 'cells');
  return cells?.slice(0, MAX_CELLS).map((cell) => ({
    label: labelOf(cell),
    source: textIn(cell, 'source'),
    outputs: (listIn(cell, 'outputs') ?? []).map(outputOf),
  }));
}

function labelOf(cell: unknown): string {
  const kind = textIn(cell, 'cell_type');
  if (kind !== 'code') return kind === 'markdown' ? 'text' : kind;
  const count = valueIn(cell, 'execution_count');
  return `In [${typeof count === 'number' ? count : ' '}]`;
}

function outputOf(output: unknown): string {
  const kind = textIn(output, 'output_type');
  if (kind === 'stream') return textIn(output, 'text');
  if (kind === 'error') return `${textIn(output, 'ename')}: ${textIn(output, 'evalue')}`;
  const data = valueIn(output, 'data');
  const types = typeof data === 'object' && data !== null ? Object.keys(data) : [];
  return types.includes('text/plain') ? textIn(data, 'text/plain') : `(${types.join(', ') || 'nothing'}: not shown)`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const valueIn = (of: unknown, key: string): unknown =>
  typeof of === 'object' && of !== null && Object.hasOwn(of, key) ? (of as Record<string, unknown>)[key] : undefined;

function listIn(of: unknown, key: string): readonly unknown[] | undefined {
  const list = valueIn(of, key);
  return Array.isArray(list) ? list : undefined;
}

/** A text, or the lines of one. */
function textIn(of: unknown, key: string): string {
  const value = valueIn(of, key);
  return (Array.isArray(value) ? value : [value]).filter((line) => typeof line === 'string').join('');
}
