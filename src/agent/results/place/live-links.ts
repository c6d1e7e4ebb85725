/**
 * The live files among the results. The listing also names them (docs/dev/servers.md 4.2), but the name proves nothing: a
 * listed file is a live file if its bytes equal those of the mirror, as far as both go. Then it is a relative link to
 * the mirror below `results/`, and is not fetched again.
 */
import path from 'node:path';
import { startsAlike } from '../../../bytes.ts';
import { keyText, parseTaskId } from '../../../job.ts';
import { likelyPaths, SHIFT_CAPABILITY, shiftOf } from '../../../live-paths.ts';
import { isVerified } from '../../../proven.ts';
import { endsWith, partsOf } from '../../../safe-names.ts';
import { inSlices } from '../../../slices.ts';
import type { LiveFileRow, ResultRow } from '../../../store/rows.ts';
import type { FileCalls } from '../../../system/files.ts';
import { mirrorPath } from '../../live/mirror/mirror.ts';
import type { CapabilityStore } from '../../ports/server.ts';
import { type Arrived, digestOf, HEAD_BYTES, headOf } from './temporary-files.ts';

interface LiveLinksOptions {
  readonly mirrorDirectory: string;
  readonly calls: FileCalls;
  readonly liveFiles: readonly LiveFileRow[];
  /** The listed names that are live files, each with its `keyText`. */
  readonly linked: Iterable<{ readonly name: string; readonly live: string }>;
  readonly capabilities: CapabilityStore;
  /** Whether the file system is known to refuse symbolic links: live files are results like others then. */
  readonly areRefused?: boolean;
}

export class LiveLinks {
  readonly #mirrorDirectory: string;
  readonly #calls: FileCalls;
  readonly #capabilities: CapabilityStore;
  /** By the last part of the path that the service sent with the text. */
  readonly #byLastPart = new Map<string, { readonly parts: readonly string[]; readonly row: LiveFileRow }[]>();
  readonly #byKey = new Map<string, LiveFileRow>();
  /** First bytes of mirrors: one that starts differently is not read for its digest. */
  readonly #heads = new Map<LiveFileRow, Buffer>();
  readonly #linked = new Map<string, string>();
  areRefused: boolean;

  constructor({ mirrorDirectory, calls, liveFiles, linked, capabilities, areRefused = false }: LiveLinksOptions) {
    this.#capabilities = capabilities;
    this.areRefused = areRefused;
    this.#mirrorDirectory = mirrorDirectory;
    this.#calls = calls;
    for (const row of liveFiles) {
      this.#byKey.set(keyText(row), row);
      const parts = partsOf(row.relativePath ?? '');
      const last = parts.at(-1);
      if (last === undefined) continue;
      const sameName = this.#byLastPart.get(last);
      if (sameName === undefined) this.#byLastPart.set(last, [{ parts, row }]);
      else sameName.push({ parts, row });
    }
    for (const { live, name } of linked) this.#linked.set(live, name);
  }

  /** The live files that a listed path could be, by its end: their paths are relative to an unnamed task. */
  candidates(parts: readonly string[]): readonly LiveFileRow[] {
    const sameName = this.#byLastPart.get(parts.at(-1) ?? '') ?? [];
    return sameName.filter(({ parts: end }) => endsWith(parts, end)).map(({ row }) => row);
  }

  /** The live file without another name whose path this is, unless its task has another directory than expected. */
  expectedAt(name: string, parts: readonly string[]): LiveFileRow | undefined {
    if (this.areRefused) return undefined;
    return this.candidates(parts).find((live) => this.#isFree(live, name) && this.#isAt(live, parts));
  }

  /** Whether a path is that of a live file in the directory of some task. */
  isOfTask(parts: readonly string[]): boolean {
    return (
      !this.areRefused &&
      parseTaskId(parts[0]) !== undefined &&
      this.candidates(parts).some(({ relativePath }) => partsOf(relativePath ?? '').length + 1 === parts.length)
    );
  }

  /** The live file that a name is already proven to be; with `isFinal`, only a proof of this pass counts. */
  proven(row: ResultRow, parts: readonly string[], isFinal: boolean): LiveFileRow | undefined {
    if (this.areRefused) return undefined;
    const linked = row.live === null ? undefined : this.#byKey.get(row.live);
    if (linked !== undefined && !isFinal) return linked;
    const claims = this.candidates(parts).filter(({ listedName }) => listedName === row.name);
    const [claim] = claims;
    if (claim === undefined || claims.length > 1 || !this.#isFree(claim, row.name)) return undefined;
    return isVerified(claim) || (!isFinal && claim.position > 0) ? claim : undefined;
  }

  /** The one live file whose mirror equals the downloaded bytes, as far as both go. */
  async match(arrived: Arrived, row: ResultRow, parts: readonly string[]): Promise<LiveFileRow | undefined> {
    const free = this.candidates(parts).filter((live) => this.#isFree(live, row.name));
    const head = free.length === 0 ? undefined : await headOf(this.#calls, arrived.path, HEAD_BYTES);
    if (head === undefined) return undefined;
    const same: LiveFileRow[] = [];
    for await (const live of inSlices(free)) {
      if (startsAlike(head, await this.#headOf(live)) && (await this.#isSame(arrived, live))) same.push(live);
    }
    const [only] = same;
    // Two tasks wrote the same so far: the directory of the task distinguishes them.
    if (only === undefined || same.length > 1) return same.find((live) => this.#isAt(live, parts));
    const shift = only.position > 0 && this.isOfTask(parts) ? shiftOf(only, parts.join('/')) : undefined;
    if (shift !== undefined) this.#capabilities.set(SHIFT_CAPABILITY, shift);
    return only;
  }

  link(name: string, live: LiveFileRow): void {
    this.#linked.set(keyText(live), name);
  }

  textOf(live: LiveFileRow, target: string): string {
    return path.relative(path.dirname(target), mirrorPath(this.#mirrorDirectory, live.jobId, live));
  }

  get #shift(): string | undefined {
    return this.#capabilities.get(SHIFT_CAPABILITY);
  }

  #isAt(live: LiveFileRow, parts: readonly string[]): boolean {
    return likelyPaths(live, this.#shift).includes(`/${parts.join('/')}`);
  }

  #isFree(live: LiveFileRow, name: string): boolean {
    return [undefined, name].includes(this.#linked.get(keyText(live)));
  }

  async #headOf(live: LiveFileRow): Promise<Buffer> {
    const known = this.#heads.get(live);
    if (known !== undefined) return known;
    const file = mirrorPath(this.#mirrorDirectory, live.jobId, live);
    const head = (await headOf(this.#calls, file, Math.min(HEAD_BYTES, live.position))) ?? Buffer.alloc(0);
    this.#heads.set(live, head);
    return head;
  }

  async #isSame({ path: file, digest }: Arrived, live: LiveFileRow): Promise<boolean> {
    const common = Math.min(digest.bytes, live.position);
    if (common === 0 && digest.bytes + live.position > 0) return false;
    const here = await digestOf(this.#calls, mirrorPath(this.#mirrorDirectory, live.jobId, live), common);
    const there = common === digest.bytes ? digest : await digestOf(this.#calls, file, common);
    return here !== undefined && here.sha256 === there?.sha256;
  }
}
