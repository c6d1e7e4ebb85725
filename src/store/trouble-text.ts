/** A failure as the JSON text of one column, and back. */
import type { Trouble } from './rows.ts';

export function troubleText(trouble: Trouble | null): string | null {
  return trouble === null ? null : JSON.stringify(trouble);
}

export function troubleOf(text: string | null): Trouble | null {
  return text === null ? null : (JSON.parse(text) as Trouble);
}
