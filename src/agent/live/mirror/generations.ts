/**
 * Keeps the old generation of a mirror when its remote file was truncated or rewritten: the bytes are copied to
 * `stdout.log.1` (older ones move up), then the mirror is cut to nothing in place, for `tail -f` follows the inode.
 *
 * Each step can be the last one before a kill; `finishRotation` goes on from the committed `rotation`:
 *   null     nothing was begun
 *   copying  the copy may be missing or torn: it is made again, for the mirror still has the bytes
 *   copied   the copy is whole; if its file is gone, it already has its number; the mirror may or may not be cut
 */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { LiveFileRow } from '../../../store/rows.ts';
import { flushPath } from '../../../system/directories.ts';
import type { Mirror } from './mirror.ts';

export interface GenerationOptions {
  /** Old generations that are kept of a rewritten file; 0 keeps none. */
  readonly keepGenerations: number;
  /** Commits the row durably. */
  readonly commit: (row: LiveFileRow) => void;
  /** Called at each point where a kill could matter, by its name; tests end the work there. */
  readonly checkpoint: (step: string) => void | Promise<void>;
}

/** Begins a new generation; the returned row stands at position 0 of it. */
export async function beginGeneration(
  row: LiveFileRow,
  mirror: Mirror,
  options: GenerationOptions,
): Promise<LiveFileRow> {
  const begun: LiveFileRow = { ...row, rotation: 'copying' };
  await options.checkpoint('rotation:begin');
  options.commit(begun);
  return finishRotation(begun, mirror, options);
}

/** Goes on with what a kill interrupted; returns the row unchanged if there is nothing to finish. */
export async function finishRotation(
  row: LiveFileRow,
  mirror: Mirror,
  options: GenerationOptions,
): Promise<LiveFileRow> {
  if (row.rotation === null) return row;
  const { checkpoint } = options;
  const keep = keptOf(row, options);
  const copy = `${mirror.path}.keeping`;
  let at = row;
  if (at.rotation === 'copying') {
    await checkpoint('rotation:copy');
    if (keep > 0) await copyDurably(mirror.path, copy);
    // What was promised of the mirror is now promised by the copy.
    at = { ...at, rotation: 'copied', position: 0, fingerprint: null, inexact: [] };
    await checkpoint('rotation:copied');
    options.commit(at);
  }
  await checkpoint('rotation:number');
  if (keep > 0 && (await exists(copy))) await numberCopy(mirror.path, copy, keep, checkpoint);
  await checkpoint('rotation:cut');
  await mirror.cut(0);
  await mirror.flush();
  const look = await mirror.look();
  const fresh: LiveFileRow = {
    ...at,
    rotation: null,
    generation: at.generation + 1,
    verified: null,
    inode: look.inode,
    modifiedNs: look.modifiedNs,
  };
  await checkpoint('rotation:end');
  options.commit(fresh);
  return fresh;
}

/** A progress file is rewritten again and again by design: its last state before is enough. */
const keptOf = ({ file }: LiveFileRow, { keepGenerations }: GenerationOptions) =>
  file === 'progress' ? Math.min(1, keepGenerations) : keepGenerations;

async function copyDurably(from: string, to: string): Promise<void> {
  await fs.rm(to, { force: true });
  await fs.copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  await flushPath(to);
  await flushPath(path.dirname(to));
}

/** Moves the older ones up, as far as the first free number, and gives the copy number 1. */
async function numberCopy(
  mirrorFile: string,
  copy: string,
  keep: number,
  checkpoint: GenerationOptions['checkpoint'],
): Promise<void> {
  let free = 1;
  while (free < keep && (await exists(`${mirrorFile}.${free}`))) free++;
  for (let number = free; number > 1; number--) {
    await fs.rename(`${mirrorFile}.${number - 1}`, `${mirrorFile}.${number}`);
    await checkpoint('rotation:moved');
  }
  await fs.rename(copy, `${mirrorFile}.1`);
  await flushPath(path.dirname(mirrorFile));
}

async function exists(file: string): Promise<boolean> {
  return fs.lstat(file).then(
    () => true,
    () => false,
  );
}
