/** One connection of the old scp protocol: the command, the conversation, and the files that are taken from it. */
import fs from 'node:fs/promises';
import type { DirectArrival, DirectFile } from '../agent/ports.ts';
import { runProgram } from '../system/program.ts';
import type { Arrivals } from './arrivals.ts';
import { NotScp, ScpRecords } from './scp-records.ts';
import { HOST_ALIAS, type SshOrder } from './ssh-access.ts';

/** Words of one command. */
export const MAX_WORDS = 1_000;
/** A command of more than 128 KiB is refused by Linux. */
export const MAX_COMMAND_CHARACTERS = 64_000;
/** The exit code of ssh where the connection was lost. */
export const CONNECTION_LOST = 255;
export const YES = '\0';
export const NO = '\u0001not wanted\n';

export interface ScpRun {
  readonly order: SshOrder;
  readonly arrivals: Arrivals;
  /** Whether the other side ever answered. */
  works: boolean;
}

export type Reply = (bytes: string) => void;

/** Runs `scp` with these words on the other side; resolves with its exit code and the end of its standard error. */
export async function runScp(
  words: readonly string[],
  { order: { configFile, idleMs, signal } }: ScpRun,
  converse: (records: ScpRecords, reply: Reply) => Promise<void>,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const talk = (output: AsyncIterable<Buffer>, reply: Reply) => converse(new ScpRecords(output), reply);
  const args = ['-F', configFile, '-T', '--', HOST_ALIAS, 'scp', ...words];
  try {
    return await runProgram({ command: 'ssh', args, talk, limit: { idleMs }, signal });
  } catch (error) {
    if (!(error instanceof NotScp)) throw error;
    return { code: null, said: error.message };
  }
}

/** Receives an announced file, or refuses it as too large. False if the other side ended before it was whole. */
export async function receiveFile(
  file: DirectFile,
  bytes: number,
  { records, reply }: { readonly records: ScpRecords; readonly reply: Reply },
  { order, arrivals }: ScpRun,
  onWhole = (arrival: DirectArrival) => arrivals.add(arrival, bytes),
): Promise<boolean> {
  if (order.maxFileBytes !== null && bytes > order.maxFileBytes) {
    reply(NO);
    order.onTooLarge(file);
    return true;
  }
  reply(YES);
  const local = arrivals.newPath();
  let isTaken = false;
  try {
    const digest = await arrivals.write(local, records.bytes(bytes));
    if (digest.bytes < bytes) return false;
    isTaken = await records.isWhole();
    if (isTaken) await onWhole({ file, path: local, digest });
    reply(YES);
    return true;
  } finally {
    if (!isTaken) await fs.rm(local, { force: true });
  }
}
