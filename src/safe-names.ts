/**
 * Paths below the mirror directory, a contract with those who read them. Names of result files come from the server and
 * are hostile until proven otherwise: the path of a name below `results/`, or the reason why it has none (docs/dev/servers.md
 * 4.2).
 */
import { isLiveFileName, type JobId, type LiveFileKey, parseLong } from './job.ts';

/** Temporary files of downloads stand beside their target under such a name; no result may have one. */
const PARTIAL_NAME = /^\.jobtail-[0-9a-f]{16}\.partial$/;

export function partialName(random: string): string {
  return `.jobtail-${random}.partial`;
}

export function isPartialName(name: string): boolean {
  return PARTIAL_NAME.test(name);
}

const MAX_BYTES_A_PART = 255;
const MAX_BYTES_A_PATH = 3_000;
const MAX_PARTS = 100;
/** A newline or a tab in a name is legal and is kept; what moves a terminal's cursor is not. */
const CONTROL_CHARACTER = /(?![\n\t])\p{Cc}/u;
/** No SOAP request can contain it. */
const NOT_OF_XML = /[\uFFFE\uFFFF]/;

type ResultPath = { readonly parts: readonly string[] } | { readonly refused: string };

/** The path of a listed name below `results/`: leading slashes are dropped, doubled ones count once. */
export function resultPath(name: string): ResultPath {
  // First: nothing is done with all of a name that is megabytes long.
  const tooLong = name.length > MAX_BYTES_A_PATH;
  const parts = tooLong ? [] : partsOf(name);
  const refused = tooLong ? 'it is too long' : reasonAgainst(name, parts);
  return refused === undefined ? { parts } : { refused };
}

function reasonAgainst(name: string, parts: readonly string[]): string | undefined {
  if (parts.length === 0) return 'it is empty';
  if (name.endsWith('/')) return 'it names a directory';
  if (Buffer.byteLength(name) > MAX_BYTES_A_PATH || parts.length > MAX_PARTS) return 'it is too long';
  if (!name.isWellFormed()) return 'it cannot be written as UTF-8';
  for (const special of ['.', '..']) if (parts.includes(special)) return `it has the part ${special}`;
  if (name.includes('\\')) return 'it has a backslash';
  if (CONTROL_CHARACTER.test(name)) return 'it has a control character';
  if (NOT_OF_XML.test(name)) return 'it has a character that XML cannot contain';
  for (const part of parts) {
    if (Buffer.byteLength(part) > MAX_BYTES_A_PART) return `a part of it is longer than ${MAX_BYTES_A_PART} bytes`;
    if (isPartialName(part)) return 'it looks like a temporary file of the agent';
  }
  return undefined;
}

export function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

/** Whether a path ends in another one, which is not empty. */
export function endsWith(parts: readonly string[], end: readonly string[]): boolean {
  return end.length > 0 && end.every((part, index) => parts[parts.length - end.length + index] === part);
}

/** The parts of the path of a mirror. */
export const liveParts = (jobId: JobId, { taskId, file }: LiveFileKey): string[] => {
  if (!isLiveFileName(file)) throw new Error(`no live file: ${file}`);
  return [whole(jobId), 'live', whole(taskId), `${file}.log`];
};

/** The numbers of former generations of a mirror among these names, the youngest first: of `stdout.log.1`, `.2`, ... */
export const formerNumbers = (names: readonly string[], mirror: string): number[] =>
  names
    .filter((name) => name.startsWith(`${mirror}.`))
    .map((name) => name.slice(mirror.length + 1))
    .filter((number) => /^[1-9][0-9]{0,3}$/.test(number))
    .map(Number)
    .sort((a, b) => a - b);

export const resultsParts = (jobId: JobId): string[] => [whole(jobId), 'results'];

/** The job whose directory of live files or results a path is in, wherever the mirrors are. */
export const jobAbove = (path: string): string | undefined => /\/(\d{1,19})\/(?:live|results)\//.exec(path)?.[1];

/** The last line of defence: an id from outside that was not parsed never leads out of the mirror directory. */
function whole(id: string): string {
  if (parseLong(id) !== id) throw new Error(`not an id: ${JSON.stringify(id)}`);
  return id;
}
