/** Arguments of the command line as values; what is none is said in one sentence. */
import { InvalidArgumentError } from 'commander';
import {
  type JobId,
  LIVE_FILE_NAMES,
  type LiveFileName,
  parseJobId,
  parseLong,
  parseTaskId,
  type TaskId,
} from '../job.ts';
import { parseSince } from './since.ts';

export function jobArgument(text: string): JobId {
  const jobId = parseJobId(text);
  if (jobId === undefined)
    throw new InvalidArgumentError(`"${text}" is no job id: a whole number of 64 bits was expected.`);
  return jobId;
}

export function taskArgument(text: string): TaskId {
  const taskId = parseTaskId(text);
  if (taskId === undefined)
    throw new InvalidArgumentError(`"${text}" is no task id: a whole number of 64 bits was expected.`);
  return taskId;
}

export function fileArgument(text: string): LiveFileName {
  const file = LIVE_FILE_NAMES.find((name) => name === text);
  if (file === undefined)
    throw new InvalidArgumentError(`"${text}" is no live file: one of ${LIVE_FILE_NAMES.join(', ')} was expected.`);
  return file;
}

export function projectArgument(text: string): string {
  const id = parseLong(text);
  if (id === undefined) throw new InvalidArgumentError(`"${text}" is no project id: a whole number was expected.`);
  return id;
}

export function linesArgument(text: string): number {
  if (text === 'all') return Number.POSITIVE_INFINITY;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError(`"${text}" is no number of lines, nor "all".`);
  return Number(text);
}

export function sinceArgument(text: string): number {
  const since = parseSince(text, Date.now());
  if (since === undefined)
    throw new InvalidArgumentError(`"${text}" is no time: 90s, 10m, 2h, 1d or a date was expected.`);
  return since;
}

export function portArgument(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new InvalidArgumentError(`"${text}" is no port.`);
  return port;
}

export function secondsArgument(text: string): number {
  const seconds = Number(text);
  if (!(seconds >= 1 && seconds <= 600)) throw new InvalidArgumentError(`"${text}" is no number from 1 to 600.`);
  return seconds;
}

export function collect<T>(parse: (text: string) => T): (text: string, before: T[]) => T[] {
  return (text, before) => [...before, parse(text)];
}
