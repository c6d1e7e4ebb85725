/** Parsers for arguments of the command line, and options of several commands. An invalid argument is reported in one sentence. */
import { InvalidArgumentError, Option } from 'commander';
import { JobtailError } from '../errors.ts';
import { type JobId, LIVE_FILE_NAMES, parseJobId, parseLong, parseTaskId } from '../job.ts';
import { isQuickPattern } from '../quick-pattern.ts';

/** A parser for commander; `isNone` ends the sentence `"..." is no ...`. */
function argument<T>(parse: (text: string) => T | undefined, isNone: string): (text: string) => T {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new InvalidArgumentError(`"${text}" is no ${isNone}.`);
    return value;
  };
}

export const jobArgument = argument(parseJobId, 'job id: a whole number from 1 to 2^63 - 1 was expected');
const taskArgument = argument(parseTaskId, 'task id: a whole number of 64 bits was expected');
export const projectArgument = argument(parseLong, 'project id: a whole number was expected');
const fileArgument = argument(
  (text) => LIVE_FILE_NAMES.find((name) => name === text),
  `live file: one of ${LIVE_FILE_NAMES.join(', ')} was expected`,
);
export const linesArgument = argument((text) => {
  if (text === 'all') return Number.POSITIVE_INFINITY;
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}, 'number of lines, nor "all"');
/** Whole numbers, unless `form` has others. */
function numberArgument(what: string, [min, max]: readonly [number, number], form = /^\d{1,6}$/) {
  const parse = (text: string) => {
    const value = form.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return argument(parse, `${what} from ${min} to ${max}`);
}
const FRACTION = /^\d{1,6}(\.\d+)?$/;

export const contextArgument = numberArgument('number of lines', [0, 1_000]);
export const portArgument = numberArgument('port', [0, 65_535]);
export const secondsArgument = numberArgument('number of seconds', [1, 3_600], FRACTION);
const patternArgument = argument(
  (text) => (text !== '' && isQuickPattern(text) ? text : undefined),
  'pattern: one such as heat-* was expected, with at most two ** before its end',
);
export const daysArgument = numberArgument('number of days', [0, 3_650], FRACTION);
/** The limits are those of `watchMine.maxJobs`. */
export const jobsArgument = numberArgument('number of jobs', [1, 100_000]);
export const sinceArgument = argument((text) => {
  requireUnit(text);
  return parseSince(text, Date.now());
}, 'time: 90s, 10m, 2h, 1d or a date was expected');

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DURATION_MS = 3_650 * 86_400_000;

/** A bare number is refused: `--since 30` may mean seconds or minutes. */
function requireUnit(text: string): void {
  if (/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError(`"${text}" has no unit: ${text}m or ${text}s?`);
}

/** In milliseconds: `30m`, `2h30m`. */
export const durationArgument = argument((text) => {
  requireUnit(text);
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/gy)];
  const isWhole = parts.map(([part]) => part).join('') === text;
  const ms = parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS_MS[unit ?? ''] ?? 0), 0);
  return isWhole && ms >= 1 && ms <= MAX_DURATION_MS ? ms : undefined;
}, 'duration above 0: 90s, 10m, 2h30m or 1d was expected');

/** A time (`10m`, `2026-03-01T12:00:00`) in milliseconds since 1970. */
export function parseSince(text: string, now: number): number | undefined {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(s|m|h|d)$/.exec(text) ?? [];
  if (number !== undefined) return now - Number(number) * (UNITS_MS[unit] ?? 0);
  // Without a date, Date.parse accepts many words.
  if (!/^\d{4}-\d{2}-\d{2}/.test(text)) return undefined;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : moment;
}

export function collect<T>(parse: (text: string) => T): (text: string, before?: T[]) => T[] {
  return (text, before = []) => [...before, parse(text)];
}

interface OneOrMine {
  readonly mine?: boolean;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly maxAge?: number;
  readonly maxJobs?: number;
}

/** Undefined for all jobs of the user. @throws JobtailError usage */
export function jobsUnlessMine(
  jobIds: readonly JobId[],
  { mine = false, include = [], exclude = [], maxAge, maxJobs }: OneOrMine,
): readonly JobId[] | undefined {
  const refuse = (message: string) =>
    new JobtailError('usage', message, { hint: 'name a job, or use --mine for all jobs of the user' });
  if (mine && jobIds.length > 0) throw refuse(`--mine is for all jobs, not for job ${jobIds[0]} alone`);
  if (!mine && jobIds.length === 0) throw refuse('the id of a job is missing');
  const ofMine = { include: include[0], exclude: exclude[0], 'max-age': maxAge, 'max-jobs': maxJobs };
  const [given] = Object.entries(ofMine).filter(([, value]) => value !== undefined);
  if (!mine && given !== undefined) throw refuse(`--${given[0]} goes with --mine`);
  return mine ? undefined : [...new Set(jobIds)];
}

/** For `--json`. */
export const JSON_HELP = 'print JSON (format version 2)';

export const quietOption = () => new Option('-q, --quiet', 'print only errors');

export const protocolOption = (description: string) =>
  new Option('--protocol <name>', description).choices(['soap', 'rest'] as const).default('rest' as const);

export const taskOption = (description: string, ifLeftOut: string) =>
  new Option('--task <id>', description).argParser(collect(taskArgument)).default([], ifLeftOut);

export const mineOption = (description: string) =>
  new Option('--mine', description).conflicts(['task', 'file', 'results', 'wait', 'foreground', 'stallAfter', 'now']);

export const patternOption = (flags: string, description: string, ifLeftOut: string) =>
  new Option(flags, description).argParser(collect(patternArgument)).default([], ifLeftOut);

export function fileOption(): Option {
  const option = new Option('--file <name>', 'a live file (repeatable)').choices(LIVE_FILE_NAMES);
  return option.argParser(collect(fileArgument)).default([], 'all');
}
