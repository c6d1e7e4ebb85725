/** A search over many files, in threads; its results come in the order of the files. */
import { availableParallelism } from 'node:os';
import { asJobtailError, JobtailError } from '../errors.ts';
import { GuardedThread } from './guarded-thread.ts';
import { LineMatcher, type Pattern } from './pattern.ts';
import { type FoundLine, LIMITS, type ScanLimits, scanFile, type Wanted } from './scan.ts';

interface SearchSettings {
  readonly pattern: Pattern;
  readonly wanted: Wanted;
  readonly limits?: ScanLimits | undefined;
}

export interface SearchOptions<File> extends SearchSettings {
  readonly files: readonly File[];
  /** Default: by the amount of work, 0 only for a text, which this thread searches without an expression. */
  readonly threads?: number | undefined;
  /** Ends the search; in threads, also during endless backtracking. */
  readonly signal?: AbortSignal | undefined;
}

export interface SearchedFile {
  readonly path: string;
  readonly size: number;
}

/** Lines of a file; at its end, the number of selected lines, and an error of the file. */
type SearchEvent<File> =
  | { readonly kind: 'lines'; readonly file: File; readonly lines: readonly FoundLine[] }
  | { readonly kind: 'end'; readonly file: File; readonly count: number; readonly error: string | null };

export interface ThreadWork extends SearchSettings {
  readonly groups: readonly (readonly string[])[];
}

/** The result of one request to a thread; files are indices in their group. */
export interface SearchBatch {
  readonly events: readonly (
    | Extract<SearchEvent<number>, { readonly kind: 'end' }>
    | { readonly kind: 'lines'; readonly file: number; readonly packed: PackedLines }
  )[];
  readonly isLastOfGroup: boolean;
}

/** Lines in one long text: copying it between threads is much faster than many objects. */
interface PackedLines {
  readonly text: string;
  readonly numbers: readonly number[];
  readonly selected: readonly boolean[];
}

export const pack = (lines: readonly FoundLine[]): PackedLines => ({
  text: lines.map(({ bytes }) => bytes).join('\n'),
  numbers: lines.map(({ number }) => number),
  selected: lines.map(({ isSelected }) => isSelected),
});

const unpack = ({ text, numbers, selected }: PackedLines): FoundLine[] =>
  text.split('\n').map((bytes, line) => ({ number: numbers[line] ?? 0, bytes, isSelected: selected[line] ?? true }));

const MAX_THREADS = 8;
/** Fewer bytes are searched faster without starting a thread. */
const MIN_BYTES_FOR_THREADS = 32 * 1024 * 1024;
/** Strings of many windows live until their batch is sent: a small young generation costs a quarter of the speed. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 256 };
const GROUP_BYTES = 4 * 1024 * 1024;
const GROUP_FILES = 256;
const BATCHES_AHEAD = 16;

/** @throws JobtailError usage: no regular expression; timeout: too long for a line; Error AbortError by the signal */
export async function* search<File extends SearchedFile>(
  options: SearchOptions<File>,
): AsyncGenerator<SearchEvent<File>, void> {
  const { files, signal, pattern, wanted, limits } = options;
  const settings = { pattern, wanted, limits };
  // Also with threads: this thread refuses a wrong pattern.
  const matcher = new LineMatcher(pattern);
  const { threads = threadsFor(files, matcher) } = options;
  if (threads > 0) return yield* searchInThreads(files, settings, threads, signal);
  for (const file of files) {
    signal?.throwIfAborted();
    for (const event of eventsOf(file.path, matcher, settings))
      if (event.kind === 'end' || event.lines.length > 0) yield { ...event, file };
  }
}

/** Of each window of a file, the lines that were found, also if there are none. */
export function* eventsOf(path: string, matcher: LineMatcher, settings: SearchSettings) {
  const { wanted, limits = LIMITS } = settings;
  try {
    const scan = scanFile(path, matcher, wanted, limits);
    let step = scan.next();
    for (; step.done !== true; step = scan.next()) yield { kind: 'lines', lines: step.value } as const;
    yield { kind: 'end', count: step.value, error: null } as const;
  } catch (error) {
    yield { kind: 'end', count: 0, error: asJobtailError(error).message } as const;
  }
}

function threadsFor(files: readonly SearchedFile[], { isText }: LineMatcher): number {
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  if (files.length > 1 && bytes >= MIN_BYTES_FOR_THREADS) return Math.min(availableParallelism(), MAX_THREADS);
  return isText || files.length === 0 ? 0 : 1;
}

/** Each thread has every n-th group, and sends a batch for each request, which limits the waiting results. */
async function* searchInThreads<File extends SearchedFile>(
  files: readonly File[],
  settings: SearchSettings,
  threads: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<SearchEvent<File>, void> {
  const groups = groupsOf(files);
  const pool = Array.from({ length: Math.min(threads, groups.length) }, (_, index) => {
    const own = groups.filter((_, group) => group % threads === index).map((group) => group.map(({ path }) => path));
    const workerData: ThreadWork = { ...settings, groups: own };
    const options = { workerData, resourceLimits: THREAD_LIMITS };
    const thread = new GuardedThread<'next', SearchBatch>('dist/search/worker.js', options);
    return { thread, asked: Array.from({ length: BATCHES_AHEAD }, () => thread.ask('next')) };
  });
  const end = () => Promise.all(pool.map(({ thread }) => thread.close()));
  signal?.addEventListener('abort', end);
  try {
    for (const [index, group] of groups.entries()) {
      const { thread, asked } = pool[index % threads] as (typeof pool)[number];
      let searched = 0;
      for (let isLast = false; !isLast; ) {
        const batch = await asked.shift();
        if (signal?.aborted === true) throw new DOMException('the search was stopped', 'AbortError');
        if (batch === undefined) throw tooSlow(group[searched]?.path);
        asked.push(thread.ask('next'));
        for (const event of batch.events) {
          const file = group[event.file];
          if (file === undefined) continue;
          if (event.kind === 'end') searched = event.file + 1;
          yield event.kind === 'end' ? { ...event, file } : { kind: 'lines', file, lines: unpack(event.packed) };
        }
        isLast = batch.isLastOfGroup;
      }
    }
  } finally {
    signal?.removeEventListener('abort', end);
    await end();
  }
}

const tooSlow = (file = '') =>
  new JobtailError('timeout', `${file}: the expression takes too long, or too much memory, for a line of it`, {
    hint: 'write it without a repetition inside of another one',
  });

/** The files in order: one that is large, or many that are small. */
function groupsOf<File extends SearchedFile>(files: readonly File[]): File[][] {
  const groups: File[][] = [];
  let bytes = GROUP_BYTES;
  for (const file of files) {
    const group = groups.at(-1);
    if (group === undefined || bytes + file.size > GROUP_BYTES || group.length === GROUP_FILES) {
      groups.push([file]);
      bytes = 0;
    } else group.push(file);
    bytes += file.size;
  }
  return groups;
}
