/** Finds lines that look like errors: the first and the last one of each task, and groups of similar ones. */
import type { JobId, LiveFileName, TaskId } from '../job.ts';
import { statesOf, withoutColours } from '../line-states.ts';
import type { MirrorFile } from './mirrors.ts';
import { expressionOf } from './pattern.ts';
import type { FoundLine } from './scan.ts';
import { search } from './search.ts';

/** Defaults of `errors.patterns`; case is ignored. */
const ERROR_PATTERNS = [
  // Neither "no errors", "errors: 0", nor the error of a computation, which is a fraction.
  '(?<!\\b(?:no|0|without) |\\bt)errors?\\b(?! {0,9}[=:]? {0,9}[-+]?\\d{0,9}(?:\\.\\d|e[-+]\\d)| {0,9}[=:] {0,9}0\\b)',
  '\\bfatal\\b',
  '\\bcritical(?=[\\]:]| - )',
  'exception\\b|\\bterminate called\\b|\\bbad_alloc\\b',
  'traceback \\(most recent call last\\)',
  'segmentation fault|\\bsegfault\\b|core dumped',
  '\\bkilled\\b|\\boom.?kill',
  'out of memory|cannot allocate memory',
  'cuda_?error',
  '\\bslurmstepd:',
  'mpi_abort',
  '\\bpanic\\b',
  'assertion\\b.{0,200}\\bfailed',
  'no space left on device|disk quota exceeded',
];

const MAX_CHARACTERS = 1000;
/** As for notifications: the patterns are tried on shorter texts when the configuration is loaded. */
const MAX_TESTED_CHARACTERS = 4096;
/** An error that begins later in its line is shown with some characters before it. */
const MAX_BEFORE = 150;
const CHARACTERS_BEFORE = 50;

interface ErrorLine {
  readonly file: LiveFileName;
  readonly line: number;
  readonly text: string;
}

interface TaskErrors {
  readonly jobId: JobId;
  readonly taskId: TaskId;
  /** In the order of stdout, stderr, log, progress: lines of different files have no order in time. */
  readonly first: ErrorLine;
  readonly last: ErrorLine;
}

/** Errors of several tasks that differ only in numbers, paths and quoted texts. */
export interface ErrorGroup {
  readonly tasks: number;
  readonly likeness: string;
  readonly first: ErrorLine & Pick<TaskErrors, 'jobId' | 'taskId'>;
}

interface ErrorSearch {
  readonly files: readonly MirrorFile[];
  /** Null: the defaults. */
  readonly patterns: readonly string[] | null;
  readonly onUnreadable: (error: string) => void;
  readonly signal?: AbortSignal;
}

/** One expression for all patterns; null: the defaults. */
export function errorExpression(patterns: readonly string[] | null): string {
  return (patterns ?? ERROR_PATTERNS).map((pattern) => `(?:${pattern})`).join('|');
}

export async function errorsIn({ files, patterns, onUnreadable, signal }: ErrorSearch): Promise<TaskErrors[]> {
  const pattern = { source: errorExpression(patterns), ignoreCase: true, maxCharacters: MAX_TESTED_CHARACTERS };
  const expression = expressionOf(pattern);
  const tasks = new Map<string, TaskErrors>();
  const wanted = { what: 'ends', numbered: true } as const;
  for await (const event of search({ files, pattern, wanted, signal })) {
    if (event.kind === 'end') {
      if (event.error !== null) onUnreadable(event.error);
      continue;
    }
    const { jobId, taskId, file } = event.file;
    const key = `${jobId}/${taskId}`;
    for (const found of event.lines) {
      const last = { file, line: found.number, text: textOf(found, expression) };
      tasks.set(key, { jobId, taskId, first: tasks.get(key)?.first ?? last, last });
    }
  }
  return [...tasks.values()];
}

/** The last state of the line that looks like an error: of a long one the part around it, without a progress bar. */
function textOf({ bytes }: FoundLine, expression: RegExp): string {
  const line = Buffer.from(bytes, 'latin1').toString();
  const states = statesOf(line, MAX_TESTED_CHARACTERS);
  const state = states.map(withoutColours).findLast((text) => expression.test(text)) ?? '';
  const at = state.search(expression);
  if (line.includes('\r') && states.length > 1) {
    const [word = ''] = /\w{0,40}$/.exec(state.slice(0, at)) ?? [];
    return partOf(state, at - word.length);
  }
  return at < MAX_BEFORE ? partOf(state, 0) : `…${partOf(state, at - CHARACTERS_BEFORE)}`;
}

const partOf = (text: string, at: number) => text.slice(at, at + MAX_CHARACTERS).trim();

export function groupsOf(tasks: readonly TaskErrors[]): ErrorGroup[] {
  const groups = new Map<string, ErrorGroup>();
  for (const { jobId, taskId, first, last } of tasks) {
    const ofTask = new Map([last, first].map((line) => [likenessOf(line.text), line]));
    for (const [likeness, line] of [...ofTask].reverse()) {
      const group = groups.get(likeness) ?? { tasks: 0, likeness, first: { jobId, taskId, ...line } };
      groups.set(likeness, { ...group, tasks: group.tasks + 1 });
    }
  }
  return [...groups.values()].sort((a, b) => b.tasks - a.tasks);
}

/** Replacements, in this order, that make similar errors equal. */
const PLACEHOLDERS: readonly (readonly [expression: RegExp, placeholder: string])[] = [
  [/"[^"]*"|`[^`]*`|(?<!\w)'[^']*'/g, '<text>'],
  [/(?<![\w.])~?(?:\/[\w.@+-]+)+\/?/g, '<path>'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, '<n>'],
  [/\b0x[0-9a-f]+\b|\b(?=[a-f]{0,40}[0-9])[0-9a-f]{8,40}\b/gi, '<n>'],
  [/[0-9]+(?:[.:,][0-9]+)*/g, '<n>'],
  [/\s+/g, ' '],
];

export function likenessOf(text: string): string {
  return PLACEHOLDERS.reduce((like, [expression, placeholder]) => like.replaceAll(expression, placeholder), text);
}
