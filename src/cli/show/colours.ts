/** Colours, by the stream that is written. */
import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';

/** Whether a stream gets colours: a terminal, unless `--no-color` or `NO_COLOR` is set; `FORCE_COLOR` sets them. */
export function hasColours(
  { isTTY = false }: { readonly isTTY?: boolean },
  { env, argv }: Pick<NodeJS.Process, 'env' | 'argv'> = process,
): boolean {
  const { NO_COLOR = '', FORCE_COLOR = '', TERM } = env;
  if (NO_COLOR !== '' || FORCE_COLOR === '0' || argv.includes('--no-color')) return false;
  return FORCE_COLOR !== '' || (isTTY && TERM !== 'dumb');
}

/** For the standard output. */
export const pc = picocolors.createColors(hasColours(process.stdout));

/** A text for the standard error, whose colours are those of the standard output. */
export const forStderr = (text: string): string => (hasColours(process.stderr) ? text : stripVTControlCharacters(text));
