/** `agent grep PATTERN [JOB...]`: matching lines of the mirrors, with the output and the exit codes of grep. */
import { once } from 'node:events';
import { EXIT, JobtailError } from '../../errors.ts';
import type { JobId, LiveFileName, TaskId } from '../../job.ts';
import { JSON_VERSION, jsonReport } from '../../json-report.ts';
import { countOf } from '../../numbers.ts';
import { printable, printableJson } from '../../printable.ts';
import { literal } from '../../quick-pattern.ts';
import { type ErrorGroup, type ErrorProgress, errorsIn, groupsOf } from '../../search/errors.ts';
import { hasMirrors, type MirrorChoice, type MirrorFile, mirrorsIn } from '../../search/mirrors.ts';
import { expressionOf, type Pattern } from '../../search/pattern.ts';
import type { FoundLine, Wanted } from '../../search/scan.ts';
import { search } from '../../search/search.ts';
import { requireMirrors } from '../agent-socket.ts';
import { jobArgument } from '../arguments.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { reportError } from '../process.ts';
import { BottomLines, pc } from '../show/terminal.ts';

interface GrepOptions extends JsonOption {
  /** In place of the first argument, each line that matches one of them. */
  readonly regexp: readonly string[];
  readonly fixedStrings?: boolean;
  readonly wordRegexp?: boolean;
  /** Of each file. */
  readonly maxCount?: number;
  /** False: without task and file before each line. */
  readonly filename: boolean;
  readonly ignoreCase?: boolean;
  readonly invertMatch?: boolean;
  readonly count?: boolean;
  readonly filesWithMatches?: boolean;
  readonly lineNumber?: boolean;
  readonly quiet?: boolean;
  readonly afterContext?: number;
  readonly beforeContext?: number;
  readonly context?: number;
  readonly task: readonly TaskId[];
  readonly file: readonly LiveFileName[];
  /** In milliseconds since 1970. */
  readonly since?: number;
  readonly allGenerations?: boolean;
}

/** `args`: the pattern, unless `regexp` has it, and ids of jobs. */
export async function grep(args: readonly string[], options: GrepOptions): Promise<void> {
  await withExitCodeOfGrep(async () => {
    const [patterns, ids] = options.regexp.length > 0 ? [options.regexp, args] : [args.slice(0, 1), args.slice(1)];
    if (patterns.length === 0)
      throw new JobtailError('usage', 'the pattern is missing', { hint: 'agent grep PATTERN [JOB...]' });
    const source = sourceOf(patterns, options);
    const jobs = ids.map(jobArgument);
    const { task: tasks, file, since, allGenerations } = options;
    const config = await configurationAsOwner(options);
    requireMirrors(config);
    const files = mirrorsOrError(config.mirror.directory, { jobs, tasks, files: file, since, allGenerations });
    const pattern: Pattern = { source, ignoreCase: options.ignoreCase, invert: options.invertMatch };
    const wanted = wantedBy(options);
    const format = options.json === true ? JSON_FORMAT : textFormat(pattern, options);
    const limit = limitOf(options);
    let outcome: GrepOutcome = 'nothing';
    for await (const event of search({ files, pattern, wanted })) {
      if (event.kind === 'lines') await print(format.lines(event.file, limit(event.file, event.lines)));
      else {
        const { error } = event;
        const count = Math.min(event.count, options.maxCount ?? event.count);
        if (error !== null) outcome = reportUnreadable(error);
        if (count > 0 && options.quiet === true) return 'found';
        if (count > 0 && outcome === 'nothing') outcome = 'found';
        if (wanted.what === 'count' && error === null) await print(format.count(event.file, count));
        if (wanted.what === 'any' && count > 0) await print(format.path(event.file));
      }
    }
    return outcome;
  });
}

function sourceOf(patterns: readonly string[], { fixedStrings, wordRegexp }: GrepOptions): string {
  const sources = fixedStrings === true ? patterns.map(literal) : patterns;
  const any = sources.length === 1 ? (sources[0] ?? '') : sources.map((one) => `(?:${one})`).join('|');
  return wordRegexp === true ? `(?<!\\w)(?:${any})(?!\\w)` : any;
}

type GrepOutcome = 'found' | 'nothing' | 'failed';

const EXIT_CODES: Readonly<Record<GrepOutcome, number>> = { found: EXIT.ok, nothing: EXIT.failed, failed: EXIT.usage };

/** Sets the exit code of grep, also after an error: scripts test for 1. */
async function withExitCodeOfGrep(work: () => Promise<GrepOutcome>): Promise<void> {
  try {
    process.exitCode = EXIT_CODES[await work()];
  } catch (error) {
    reportError(error);
    process.exitCode = EXIT_CODES.failed;
  }
}

function mirrorsOrError(directory: string, choice: MirrorChoice): MirrorFile[] {
  const { jobs, tasks = [] } = choice;
  const absent = jobs.find((jobId) => !hasMirrors(directory, jobId));
  if (absent !== undefined)
    throw new JobtailError('job-unknown', `there are no mirrors of job ${absent} in ${directory}`, {
      hint: `watch it first: agent watch ${absent}`,
    });
  const absentTask = tasks.find((taskId) => mirrorsIn(directory, { jobs, tasks: [taskId] }).length === 0);
  if (absentTask === undefined) return mirrorsIn(directory, choice);
  throw new JobtailError('job-unknown', `there are no mirrors of task ${absentTask} in ${directory}`, {
    hint: 'agent status JOB shows the tasks of a job',
  });
}

function reportUnreadable(error: string): GrepOutcome {
  process.stderr.write(`agent: ${printable(error)}\n`);
  return 'failed';
}

/** Writes to the standard output, and waits for a slow reader. */
export async function print(output: string | Buffer): Promise<void> {
  if (!process.stdout.write(output)) await once(process.stdout, 'drain');
}

/** `501/9001 stdout`, or `501/9001 stdout.1` for the generation before. */
const labelOf = ({ jobId, taskId, file, generation }: MirrorFile) =>
  `${jobId}/${taskId} ${file}${generation === 0 ? '' : `.${generation}`}`;

export const decoded = (line: FoundLine) => Buffer.from(line.bytes, 'latin1').toString();
const harmless = (text: string) => printable(text.replaceAll('\t', '  '));

function wantedBy(options: GrepOptions): Wanted {
  const { context = 0, afterContext: after = context, beforeContext: before = context } = options;
  const numbered = options.lineNumber === true || options.json === true || hasGroups(options);
  if (options.filesWithMatches === true || options.quiet === true) return { what: 'any' };
  return options.count === true ? { what: 'count' } : { what: 'lines', numbered, before, after };
}

/** Keeps the first `maxCount` selected lines of a file, and the context after the last of them. */
function limitOf({ maxCount, context = 0, afterContext = context }: GrepOptions) {
  let of: { readonly file: MirrorFile; selected: number; last: number } | undefined;
  return (file: MirrorFile, lines: readonly FoundLine[]): readonly FoundLine[] => {
    if (maxCount === undefined) return lines;
    const so = of?.file === file ? of : { file, selected: 0, last: Number.POSITIVE_INFINITY };
    of = so;
    return lines.filter(({ number, isSelected }) => {
      if (isSelected && ++so.selected === maxCount) so.last = number + afterContext;
      return so.selected <= maxCount && number <= so.last;
    });
  };
}

/** Whether a separator is printed between groups of lines: also with a context of 0. */
const hasGroups = ({ context, afterContext, beforeContext }: GrepOptions) =>
  (context ?? afterContext ?? beforeContext) !== undefined;

interface Format {
  lines(file: MirrorFile, lines: readonly FoundLine[]): string | Buffer;
  count(file: MirrorFile, count: number): string;
  path(file: MirrorFile): string;
}

/** The output of grep. The bytes of lines are unchanged, except on a terminal. */
function textFormat(pattern: Pattern, options: GrepOptions): Format {
  const isTerminal = process.stdout.isTTY;
  const matches = pattern.invert === true ? undefined : expressionOf(pattern, 'g');
  let last: { readonly file: MirrorFile; readonly number: number } | undefined;
  const separator = (file: MirrorFile, { number }: FoundLine) => {
    const follows = last === undefined || (last.file === file && last.number + 1 === number);
    last = { file, number };
    return follows || !hasGroups(options) ? '' : `${pc.cyan('--')}\n`;
  };
  return {
    lines(file, lines) {
      const label = pc.magenta(labelOf(file));
      const text = lines.map((line) => {
        const mark = pc.cyan(line.isSelected ? ':' : '-');
        const named = options.filename ? `${label}${mark}` : '';
        const number = options.lineNumber === true ? `${pc.green(line.number)}${mark}` : '';
        const bytes = isTerminal ? onTerminal(line, matches) : line.bytes;
        return `${separator(file, line)}${named}${number}${bytes}\n`;
      });
      return isTerminal ? text.join('') : Buffer.from(text.join(''), 'latin1');
    },
    count: (file, count) => (options.filename ? `${pc.magenta(labelOf(file))}${pc.cyan(':')}${count}\n` : `${count}\n`),
    path: ({ path }) => `${path}\n`,
  };
}

/** Of a progress bar, the last state that matches. */
function onTerminal(line: FoundLine, matches: RegExp | undefined): string {
  const states = decoded(line).replace(/\r$/, '').split('\r');
  const text = (matches && states.findLast((state) => state.search(matches) >= 0)) ?? states.join('\r');
  if (!pc.isColorSupported || !line.isSelected || matches === undefined) return harmless(text);
  let shown = '';
  let end = 0;
  for (const { 0: match, index } of text.matchAll(matches)) {
    if (match === '') continue;
    shown += `${harmless(text.slice(end, index))}${pc.bold(pc.red(harmless(match)))}`;
    end = index + match.length;
  }
  return `${shown}${harmless(text.slice(end))}`;
}

const objectOf = (type: string, { jobId, taskId, file, generation, path }: MirrorFile, more: object) =>
  `${printableJson({ version: JSON_VERSION, type, jobId, taskId, file, generation, path, ...more })}\n`;

const JSON_FORMAT: Format = {
  lines: (file, lines) =>
    lines
      .map((line) => {
        const text = decoded(line);
        const isExact = Buffer.from(text).toString('latin1') === line.bytes;
        const base64 = isExact ? {} : { base64: Buffer.from(line.bytes, 'latin1').toString('base64') };
        return objectOf(line.isSelected ? 'match' : 'context', file, { line: line.number, text, ...base64 });
      })
      .join(''),
  count: (file, count) => objectOf('count', file, { count }),
  path: (file) => objectOf('file', file, {}),
};

const MAX_SHOWN_CHARACTERS = 200;

export async function errors(jobs: readonly JobId[], options: JsonOption): Promise<void> {
  await withExitCodeOfGrep(async () => {
    const config = await configurationAsOwner(options);
    requireMirrors(config);
    const { mirror, errors: settings } = config;
    let isUnreadable = false;
    const files = mirrorsOrError(mirror.directory, { jobs });
    const onUnreadable = (error: string) => {
      isUnreadable = true;
      reportUnreadable(error);
    };
    const progress = new BottomLines(process.stderr);
    let found: ErrorProgress['tasks'] = new Map();
    for await (const { tasks, filesDone } of errorsIn({ files, patterns: settings.patterns, onUnreadable })) {
      found = tasks;
      progress.show([`${filesDone} of ${countOf(files.length, 'file')}, ${countOf(tasks.size, 'task')} with errors`]);
    }
    progress.clear();
    const tasks = [...found.values()];
    const groups = groupsOf(tasks);
    if (options.json === true) await print(jsonReport({ tasks, groups }));
    else await print(groups.map(lineOf).join(''));
    if (isUnreadable) return 'failed';
    if (tasks.length === 0 && options.json !== true)
      process.stderr.write(`no line looks like an error in ${countOf(files.length, 'file')}\n`);
    return tasks.length > 0 ? 'found' : 'nothing';
  });
}

/** `187 tasks: CUDA out of memory (first: 512/515 stderr:8812)` */
function lineOf({ tasks, first: { jobId, taskId, file, line, text } }: ErrorGroup): string {
  const shown = text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
  return `${countOf(tasks, 'task')}: ${harmless(shown)} (first: ${jobId}/${taskId} ${file}:${line})\n`;
}
