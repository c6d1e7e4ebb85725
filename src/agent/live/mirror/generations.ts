/**
 * Rotates a mirror when its remote file was truncated or rewritten: copies the bytes to `stdout.log.1` (older ones move
 * up), then truncates the mirror in place, because `tail -f` follows the inode.
 *
 * A kill can follow each step; `finishRotation` continues from the committed `rotation`:
 *   null     no rotation
 *   copying  the copy may be missing or incomplete: it is made again from the mirror
 *   copied   the copy is complete; if its file does not exist, it has its number; the mirror may be truncated or not
 *
 * In a fleet, each step is reported to the database before it is taken (`Ownership.fence`), and the name of the copy
 * has the fencing token of its owner: an owner that lost the job in the middle of a step touches no copy of the next
 * owner.
 */
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { LiveFileRow } from '../../../store/rows.ts';
import { flushPath } from '../../../system/directories.ts';
import { undefinedIfMissing } from '../../../system/files.ts';
import type { LiveFileOptions, Mirror } from './mirror.ts';

/** Starts a new generation; returns its row with offset 0. */
export async function beginGeneration(
  row: LiveFileRow,
  mirror: Mirror,
  options: LiveFileOptions,
): Promise<LiveFileRow> {
  const begun: LiveFileRow = { ...row, rotation: 'copying', copyMark: options.mirrors.ownership.copyMark(row.jobId) };
  await options.checkpoint('rotation:begin');
  options.commitNow(begun);
  return finishRotation(begun, mirror, options);
}

/** Finishes a rotation that a kill interrupted; returns the row unchanged if there is none. */
export async function finishRotation(row: LiveFileRow, mirror: Mirror, options: LiveFileOptions): Promise<LiveFileRow> {
  if (row.rotation === null) return row;
  const { checkpoint, mirrors } = options;
  const { ownership } = mirrors;
  const keep = keptOf(row, options);
  let at = row;
  if (at.rotation === 'copying') {
    // A rotation of an earlier owner is started again.
    const copyMark = ownership.copyMark(at.jobId);
    if (copyMark !== at.copyMark) {
      await fs.rm(copyOf(at, mirror), { force: true });
      at = { ...at, copyMark };
      options.commitNow(at);
    }
    await ownership.fence(at);
    await checkpoint('rotation:copy');
    if (keep > 0) await copyDurably(mirror.path, copyOf(at, mirror));
    // The copy has the committed bytes from now on.
    at = { ...at, rotation: 'copied', position: 0, checksum: null };
    await checkpoint('rotation:copied');
    options.commitNow(at);
  }
  await ownership.fence(at);
  await checkpoint('rotation:number');
  // A copy from before a reload, after which none is kept, would stay.
  if (keep === 0) await fs.rm(copyOf(at, mirror), { force: true });
  else if (await exists(copyOf(at, mirror))) await numberCopy(at, mirror, options);
  await checkpoint('rotation:cut');
  await mirror.cut(0);
  await mirror.flush();
  const stat = await mirror.stat();
  const fresh: LiveFileRow = {
    ...at,
    rotation: null,
    copyMark: null,
    generation: at.generation + 1,
    verified: null,
    unverified: null,
    inode: stat.inode,
    modifiedNs: stat.modifiedNs,
  };
  await checkpoint('rotation:end');
  // Reported before the commit: a next owner that has only the copy on record would rotate an empty mirror.
  await ownership.fence(fresh);
  options.commitNow(fresh);
  return fresh;
}

/** A progress file is rewritten by design: one old generation suffices. */
const keptOf = ({ file }: LiveFileRow, { keepGenerations }: LiveFileOptions) =>
  file === 'progress' ? Math.min(1, keepGenerations) : keepGenerations;

/** The path of a copy until it has its number. */
const copyOf = ({ copyMark }: LiveFileRow, mirror: Mirror) =>
  `${mirror.path}.keeping${copyMark === null ? '' : `-${copyMark}`}`;

async function copyDurably(from: string, to: string): Promise<void> {
  await fs.rm(to, { force: true });
  await fs.copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  await flushPath(to);
  await flushPath(path.dirname(to));
}

/** Renames older generations up to the first free number, and gives the copy number 1. */
async function numberCopy(row: LiveFileRow, mirror: Mirror, options: LiveFileOptions): Promise<void> {
  const { checkpoint, mirrors } = options;
  const { ownership } = mirrors;
  const keep = keptOf(row, options);
  const numbered = (number: number) => `${mirror.path}.${number}`;
  const rename = async (from: string, to: string) => {
    ownership.requireLease(row.jobId);
    await fs.rename(from, to);
  };
  let free = 1;
  while (free < keep && (await exists(numbered(free)))) free++;
  for (let number = free; number > 1; number--) {
    await rename(numbered(number - 1), numbered(number));
    await checkpoint('rotation:moved');
  }
  await rename(copyOf(row, mirror), numbered(1));
  await flushPath(path.dirname(mirror.path));
}

const exists = async (file: string) => (await fs.lstat(file).catch(undefinedIfMissing)) !== undefined;
