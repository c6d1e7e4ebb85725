/** The agent's log for a person at a terminal. Apart from log.ts: only there is what it loads worth its time. */
import { pino, stdTimeFunctions } from 'pino';
import pretty from 'pino-pretty';
import { type AdjustableLog, type LogOptions, safeLines } from './log.ts';

/** Readable lines on the standard error of the process. */
export function terminalLog({ level, secrets }: Omit<LogOptions, 'stream'>): AdjustableLog {
  const destination = process.stderr.on('error', () => {});
  const messageFormat =
    '{msg}{if hint} ({hint}){end}{if generation}: job {jobId}, task {taskId}, {file}: {reason}{end}';
  const looks = { translateTime: 'SYS:HH:MM:ss', ignore: 'pid', hideObject: true, messageFormat };
  const options = { level, base: null, hooks: safeLines(secrets), timestamp: stdTimeFunctions.isoTime };
  return pino(options, pretty({ destination, sync: true, ...looks }));
}
