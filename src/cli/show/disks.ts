/** The disks of mirrors and state at this moment: no state has the error of a disk that takes no more of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { printable } from '../../printable.ts';
import { DiskReserve, fileCalls } from '../../system/files.ts';
import { type Storage, storageOf } from '../../system/storage.ts';
import { pc } from './terminal.ts';

export type DiskReport = Awaited<ReturnType<typeof disksOf>>[number];

/** A file system that takes longer is hanging. */
const MAX_ASKING_MS = 2_000;
/** By directory. One that hangs is not asked again meanwhile: each request takes one of a few threads. */
const asking = new Map<string, Promise<Storage>>();

export const isDiskHanging = () => asking.size > 0;

export function disksOf({ mirror, state }: Config) {
  const { directory, minFreeBytes } = mirror;
  const reserve = new DiskReserve(directory, minFreeBytes, fileCalls(true));
  return Promise.all([
    diskAt('mirror.directory', directory, (free) => (free < minFreeBytes ? reserve.outOfRoom() : undefined)),
    diskAt('state.directory', state.directory, () => undefined),
  ]);
}

async function diskAt(key: string, directory: string, reasonFor: (freeBytes: number) => JobtailError | undefined) {
  const asked = asking.get(directory) ?? storageOf(directory).finally(() => asking.delete(directory));
  asking.set(directory, asked);
  const answer = await Promise.race([asked, sleep(MAX_ASKING_MS, undefined, { ref: false })]).catch(asJobtailError);
  const isStorage = answer !== undefined && !(answer instanceof JobtailError);
  const error = isStorage ? (answer.error ?? reasonFor(answer.freeBytes)) : (answer ?? HANGING);
  const shown = error && { code: error.code, message: error.message, hint: error.hint ?? null };
  return { key, directory, freeBytes: isStorage ? answer.freeBytes : null, error: shown ?? null };
}

const HANGING = new JobtailError('local-io', 'its file system does not answer', {
  hint: 'see whether the server of the network file system is there',
});

export function diskLines(disks: readonly DiskReport[]): string[] {
  return disks.flatMap(({ key, directory, error }) => {
    if (error === null) return [];
    const hint = error.hint === null ? [] : [`  ${printable(error.hint)}`];
    return [pc.red(`${key} ${printable(`${directory}: ${error.message}`)}`), ...hint];
  });
}
