/** Finds lines that look like errors: the first and the last one of each task, and groups of similar ones. */
import type { JobId, LiveFileName, TaskId } from '../job.ts';
import { statesOf, withoutColours } from '../line-states.ts';
import type { MirrorFile } from './mirrors.ts';
import { expressionOf } from './pattern.ts';
import type { FoundLine } from './scan.ts';
import { search } from './search.ts';

/** A number with a fraction or an exponent: what follows the error of a computation. */
const FRACTION = '(?<![\\w.])[-+]?\\d{0,30}(?:\\d\\.\\d{1,30}|\\d)(?:e[-+]?\\d{1,5}|(?<=\\.\\d{1,30}))(?![\\w.])';
const NONE = '\\s{0,9}[=:]\\s{0,9}(?:0\\b(?!\\.)|(?:(?:none|no|false|null|off)\\b|\\[\\])\\s{0,9}(?:$|[,;)]))';
const NO = '(?<!\\b(?:no|none|0|without|any)(?: \\w{1,20})? )';
/** What an error is that has a size, and what else is called by it. */
const SIZED =
  'standard|mean|squared|square|rms|relative|absolute|max|min|total|test|training|validation|prediction|time|for';
const OF_ERRORS =
  'bars?|rates?|norms?|models?|handl|correct|toleran|within|functions?|estimat|indicat|flags?|check|codes? 0\\b';

/**
 * Defaults of `errors.patterns`; case is ignored. Each has a text of four characters or more, by which lines are
 * searched. test/search/lines.txt has lines of real programs.
 */
const ERROR_PATTERNS = [
  // The level of a log, or the name of what was thrown, whatever follows.
  '\\berror(?:\\]|:? (?:-|\\||in|on|while|stop)\\s)|(?<=[\\d\\]:|z]) error [\\w.]{1,99}: [a-z]|\\blevel=error\\b',
  '(?<!_|-w|\\bt|[-./]\\w{0,40})errors?: (?=["\'`<(\\[]?[a-z])(?!none\\b)|\\b[a-z.]{2,99}error:(?: |$)',
  // Not the error of a computation, a name, or an option.
  `${NO}(?<!\\b(?:${SIZED}) |_|-w|\\bt|[-./]\\w{0,40})errors?\\b(?![-/_]|\\.\\w|\\((?!s\\))|${NONE}|\\s{0,9}=\\s{0,9}\\W?[a-z]|.{0,200}?${FRACTION}| (?:${OF_ERRORS}))`,
  `(?<!non-|-)\\bfatal\\b(?!${NONE})`,
  '\\bcritical(?=[\\]:]| - )',
  `${NO}(?<!\\bthe )exception\\b(?! (?:flags|handl))|\\bterminate called\\b|\\bbad_alloc\\b`,
  'traceback \\(most recent call last\\)|keyboardinterrupt|\\bbrokenprocesspool\\b',
  'segmentation (?:fault|violation)|\\bsegfault\\b|\\bsigsegv\\b|core dumped|\\bbus error\\b|illegal instruction',
  `\\bkilled\\b(?!(?: \\w{1,20})?${NONE})|oom-kill|oom_kill|oom kill`,
  'out of memory|memory allocation failed|not enough memory|insufficient memory|stack overflow',
  "(?:cannot|can't|could not|unable to) (?:open|load|read|write|create|find|allocate|access|connect|launch|start|resolve|import)",
  'cuda_?error|cublas_status_(?!success)|cudnn_status_(?!success)',
  'slurmstepd:|\\bjob step aborted|\\bjob \\S{1,40} (?:on \\S{1,99} )?cancelled\\b|\\bdue to time limit',
  '(?:caught|received) signal|signal received|sigterm received|watchdog caught|\\bcrashed\\b|what\\(\\): ',
  'mpi_abort|bad termination|non-zero exit|exited (?:on signal|with errors?)|(?:exit code|exitcode|exit status)[: ]{1,9}(?!0\\b)\\d|with code (?!0\\b)\\d',
  '(?:abnormal|error|unexpected) termination|\\bterminated (?:abruptly|by|due|unexpectedly)|^terminated$|: terminated$',
  '\\bpanic(?:ked)?\\b(?!\\s{0,9}=)',
  'assertion\\b.{0,200}\\bfailed',
  `${NO}(?<!\\bnot |- )\\bfailed\\b(?!(?: \\w{1,20})?${NONE})(?!=)|_failed\\b`,
  '\\bfailed (?:to|with|because)\\b|(?<![-\\w])abort(?:ed|ing)?\\b(?![-=_]|: no\\b)(?<!: abort)',
  'no space left on device|quota exceeded|input/output error|stale file handle|read-only file system',
  'too many open files|resource temporarily unavailable|argument list too long|exec format error',
  "no such file or directory|permission denied|command not found|: not found$|' not found|\\bunbound variable",
  'connection (?:refused|reset|timed out)|broken pipe|network is unreachable|lost (?:connection|communication)',
  '\\(\\): (?:invalid|corrupted)|double free|corrupted size|stack smashing|buffer overflow detected|munmap_chunk',
  "\\bexecution halted\\b|\\bdied at \\S{1,99} line\\b|can't locate \\S{1,99} in @inc|\\bundefined (?:function|reference|symbol)",
  'forrtl: severe|^severe: |unknown option|unrecognized (?:argument|option)|negative (?:jacobian|volume)|\\bfoam exiting\\b|no rule to make target|number of iterations exceeded|become unstable',
  '\\b(?:is nan|are nan|was nan|became nan|contains nan|nan detected|nan encountered)\\b',
  '(?:loss=nan|norm=nan|error=nan|residual=nan|energy=nan| = nan|l: nan|s: nan|y: nan)\\b',
  '(?<!not )\\bdiverged\\b|\\bdivergence detected|convergence not achieved|scf not converged|\\bdid not converge|failed to converge',
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

export interface TaskErrors {
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
  /** Their files are searched before others. Default: none. */
  readonly isFailed?: (jobId: JobId) => boolean;
  readonly onUnreadable: (error: string) => void;
  readonly signal?: AbortSignal;
}

/** What is found in the files that are searched so far. */
export interface ErrorProgress {
  readonly tasks: ReadonlyMap<string, TaskErrors>;
  readonly files: number;
  readonly filesDone: number;
}

/** One expression for all patterns; null: the defaults. */
export function errorExpression(patterns: readonly string[] | null): string {
  return (patterns ?? ERROR_PATTERNS).map((pattern) => `(?:${pattern})`).join('|');
}

const taskOf = ({ jobId, taskId }: Pick<MirrorFile, 'jobId' | 'taskId'>) => `${jobId}/${taskId}`;

/** Failed jobs first, and tasks with few bytes before others: their files stay in their order. */
function byNeed(files: readonly MirrorFile[], isFailed: (jobId: JobId) => boolean): MirrorFile[] {
  const tasks = new Map<
    string,
    { readonly ofTask: readonly MirrorFile[]; readonly rank: number; readonly bytes: number }
  >();
  for (const file of files) {
    const { ofTask = [], bytes = 0 } = tasks.get(taskOf(file)) ?? {};
    const rank = isFailed(file.jobId) ? 0 : 1;
    tasks.set(taskOf(file), { ofTask: [...ofTask, file], rank, bytes: bytes + file.size });
  }
  return [...tasks.values()].sort((a, b) => a.rank - b.rank || a.bytes - b.bytes).flatMap(({ ofTask }) => ofTask);
}

/** Python prints the frames of a traceback indented, then what was raised. */
const TRACEBACK = /traceback \(most recent call last\)/i;
const MAX_TRACEBACK_LINES = 500;

function inOrder(tasks: ReadonlyMap<string, TaskErrors>, files: readonly MirrorFile[]): Map<string, TaskErrors> {
  const found = [...new Set(files.map(taskOf))].map((key) => [key, tasks.get(key)] as const);
  return new Map(found.flatMap(([key, errors]) => (errors === undefined ? [] : [[key, errors]])));
}

/** Yields after each file; at the end, tasks are in the order of `files`. */
export async function* errorsIn(options: ErrorSearch): AsyncGenerator<ErrorProgress, void> {
  const { patterns, isFailed = () => false, onUnreadable, signal } = options;
  const files = byNeed(options.files, isFailed);
  const pattern = { source: errorExpression(patterns), ignoreCase: true, maxCharacters: MAX_TESTED_CHARACTERS };
  const expression = expressionOf(pattern);
  const tasks = new Map<string, TaskErrors>();
  const wanted = { what: 'ends', after: MAX_TRACEBACK_LINES } as const;
  let filesDone = 0;
  for await (const event of search({ files, pattern, wanted, signal })) {
    if (event.kind === 'end') {
      if (event.error !== null) onUnreadable(event.error);
      filesDone += 1;
      const isLast = filesDone === files.length;
      yield { tasks: isLast ? inOrder(tasks, options.files) : tasks, files: files.length, filesDone };
      continue;
    }
    const { jobId, taskId, file } = event.file;
    const key = taskOf(event.file);
    for (const found of event.lines) {
      const before = tasks.get(key);
      const isInTraceback = before?.last.file === file && TRACEBACK.test(before.last.text);
      if (isInTraceback ? /^\s/.test(found.bytes) : !found.isSelected) continue;
      const last = { file, line: found.number, text: textOf(found, expression) };
      const first = before === undefined || (isInTraceback && before.first === before.last) ? last : before.first;
      tasks.set(key, { jobId, taskId, first, last });
    }
  }
}

/** The last state of the line that looks like an error: of a long one the part around it, without a progress bar. */
function textOf({ bytes }: FoundLine, expression: RegExp): string {
  const line = Buffer.from(bytes, 'latin1').toString();
  const states = statesOf(line, MAX_TESTED_CHARACTERS);
  const shown = states.map(withoutColours);
  const state = shown.findLast((text) => expression.test(text)) ?? shown.at(-1) ?? '';
  const at = Math.max(0, state.search(expression));
  if (line.includes('\r') && states.length > 1) {
    const [word = ''] = /\w{0,40}$/.exec(state.slice(0, at)) ?? [];
    return partOf(state, at - word.length);
  }
  return at < MAX_BEFORE ? partOf(state, 0) : `…${partOf(state, at - CHARACTERS_BEFORE)}`;
}

const partOf = (text: string, at: number) => text.slice(at, at + MAX_CHARACTERS).trim();

export function groupsOf(tasks: Iterable<TaskErrors>): ErrorGroup[] {
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
