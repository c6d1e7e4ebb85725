/**
 * What the poll of a quiet file looks like: the same answer to the same question, while its mirror lies there as the
 * agent left it, means the same as the last time. Then no mirror is opened and nothing is compared.
 */
import fs from 'node:fs';
import { keyText } from '../../job.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import { EXACT } from '../../system/files.ts';
import { mirrorPath } from '../live/mirror/mirror.ts';
import type { FollowEnd } from '../live/steps.ts';
import type { Part } from '../ports.ts';

/** A poll that changed nothing: what was asked, and what came. */
export interface QuietPoll {
  readonly offset: number;
  /** The answer's text, one character a byte; null if there was no such file. */
  readonly text: string | null;
  readonly end: FollowEnd;
}

/** Longer answers are not kept. */
const MAX_TEXT_BYTES = 4 * 1024;

/** How a poll of one question went. */
export interface Went extends Omit<QuietPoll, 'text'> {
  readonly part: Part | undefined;
}

export class QuietFiles {
  readonly #mirrorDirectory: string;
  readonly #lookAt: LookAt;
  /** The live files of the job whose last poll was quiet. */
  readonly #polls = new Map<string, QuietPoll>();

  /** On a network file system a look may take long, so nothing else waits for it there. */
  constructor(mirrorDirectory: string, onNetwork: boolean) {
    this.#mirrorDirectory = mirrorDirectory;
    this.#lookAt = onNetwork ? fs.promises.lstat : fs.lstatSync;
  }

  /** The last poll of the file, if it was quiet and the mirror is as it was then. */
  async of(row: LiveFileRow): Promise<QuietPoll | undefined> {
    const quiet = this.#polls.get(keyText(row));
    if (quiet === undefined || row.rotation !== null || row.inexact.length > 0) return undefined;
    try {
      const { ino, mtimeNs, size } = await this.#lookAt(mirrorPath(this.#mirrorDirectory, row.jobId, row), EXACT);
      const asLeft = String(mtimeNs) === row.modifiedNs && String(ino) === row.inode && Number(size) === row.position;
      return asLeft ? quiet : undefined;
    } catch {
      // Whoever opens it says what is wrong.
      return undefined;
    }
  }

  /** Keeps how a poll of one question went that changed nothing, unless its answer is too long for that. */
  async note(row: LiveFileRow, { part, ...went }: Went): Promise<void> {
    if ((part?.content.length ?? 0) > MAX_TEXT_BYTES) return;
    this.#polls.set(keyText(row), { ...went, text: await textOf(part) });
  }

  forget(row: LiveFileRow): void {
    this.#polls.delete(keyText(row));
  }
}

/** Whether a part says the same as the quiet poll before. */
export async function saysTheSame(quiet: QuietPoll, part: Part | undefined, row: LiveFileRow): Promise<boolean> {
  if (part === undefined) return quiet.text === null;
  if (part.content.length !== quiet.text?.length || part.relativePath !== row.relativePath) return false;
  return (await textOf(part)) === quiet.text;
}

type LookAt = (file: string, exact: { readonly bigint: true }) => fs.BigIntStats | Promise<fs.BigIntStats>;

async function textOf(part: Part | undefined): Promise<string | null> {
  return part === undefined ? null : (await part.content.read(0, part.content.length)).toString('latin1');
}
