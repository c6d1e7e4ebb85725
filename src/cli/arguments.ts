/** Parsers for arguments of the command line. An invalid argument is reported in one sentence. */
import { InvalidArgumentError } from 'commander';
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
export const taskArgument = argument(parseTaskId, 'task id: a whole number of 64 bits was expected');
export const projectArgument = argument(parseLong, 'project id: a whole number was expected');
export const fileArgument = argument(
  (text) => LIVE_FILE_NAMES.find((name) => name === text),
  `live file: one of ${LIVE_FILE_NAMES.join(', ')} was expected`,
);
export const instanceArgument = argument(
  (text) => (/^\w[\w.-]{0,63}$/.test(text) ? text : undefined),
  'name of an instance: letters, digits, "_", "." and "-" were expected',
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
export const countArgument = numberArgument('number of lines', [0, 999_999]);
export const portArgument = numberArgument('port', [0, 65_535]);
export const secondsArgument = numberArgument('number of seconds', [1, 3_600], FRACTION);
export const patternArgument = argument(
  (text) => (text !== '' && isQuickPattern(text) ? text : undefined),
  'pattern: one such as heat-* was expected, with at most two ** before its end',
);
/** The limits are those of `watchMine.maxJobs`. */
export const jobsArgument = numberArgument('number of jobs', [1, 100_000]);

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DURATION_MS = 3_650 * 86_400_000;

/** In milliseconds: `30m`, `2h30m`. */
function durationOf(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/gy)];
  const isWhole = parts.map(([part]) => part).join('') === text;
  const ms = parts.reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS_MS[unit ?? ''] ?? 0), 0);
  return isWhole && ms >= 1 && ms <= MAX_DURATION_MS ? Math.round(ms) : undefined;
}

/** A time (`10m`, `2026-03-01T12:00:00`) in milliseconds since 1970. */
export function parseSince(text: string, now: number): number | undefined {
  const ago = durationOf(text);
  if (ago !== undefined) return now - ago;
  const [date] = /^\d{4}-\d{2}-\d{2}/.exec(text) ?? [];
  // Date.parse accepts many words without a date, and takes a date alone for one of UTC.
  const moment = date === undefined ? Number.NaN : Date.parse(date === text ? `${date}T00:00` : text);
  return Number.isNaN(moment) ? undefined : moment;
}

/** A bare number is refused: `--since 30` may mean seconds or minutes. */
function withUnit(parse: (text: string) => number | undefined, isNone: string) {
  return argument((text) => {
    if (/^\d+(\.\d+)?$/.test(text))
      throw new InvalidArgumentError(`"${text}" has no unit: ${text}s, ${text}m, ${text}h or ${text}d?`);
    return parse(text);
  }, isNone);
}

export const durationArgument = withUnit(durationOf, 'duration above 0: 90s, 10m, 2h30m or 1d was expected');
export const sinceArgument = withUnit(
  (text) => parseSince(text, Date.now()),
  'time: 90s, 10m, 2h, 1d or a date was expected',
);

export function collect<T>(parse: (text: string) => T): (text: string, before?: T[]) => T[] {
  return (text, before = []) => [...before, parse(text)];
}

/** Undefined for all jobs of the user. @throws JobtailError usage */
export function jobsUnlessMine(
  jobIds: readonly JobId[],
  { mine = false }: { readonly mine?: boolean },
): readonly JobId[] | undefined {
  if (mine !== jobIds.length > 0) return mine ? undefined : jobIds;
  const message = mine ? `--mine is for all jobs, not for job ${jobIds[0]} alone` : 'the id of a job is missing';
  throw new JobtailError('usage', message, { hint: 'name a job, or use --mine for all jobs of the user' });
}
