/** Compares each mirror and result of a job with the raw bytes of the service, or also with the cluster's own list. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { byTaskAndFile, type JobId, keyText } from '../../job.ts';
import { showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import { NO_LIVE_FILES } from '../../proven.ts';
import { partsOf, resultPath } from '../../safe-names.ts';
import { inSlices } from '../../slices.ts';
import type { LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { fileCalls } from '../../system/files.ts';
import { READ } from '../../system/regular-files.ts';
import type { Remote } from '../ports/server.ts';
import type { ClusterList, DirectBytes } from '../ports/transfer.ts';
import { send } from '../results/download/direct-bytes.ts';
import { isIrregular, isStillNoFile } from '../results/ledger.ts';
import { digestOf } from '../results/place/temporary-files.ts';
import { type Results, resultsDirectory } from '../results/results.ts';
import { compareFile, type DownloadOptions, Enough, type Proof, proveFile, reasonOf, unproven } from './comparison.ts';
import { absentFiles, proveMirrors } from './mirror-proofs.ts';

/** missing: there, not here. irregular: no file, such as a pipe or a dead link. gone: here, and no file there any more. */
export interface Verified {
  readonly name: string;
  readonly proof: Proof | { readonly outcome: 'missing' | 'irregular' | 'gone'; readonly reason: string };
}

/** Whether the original could be deleted: every byte of it is here. */
export const isHere = ({ proof }: Verified) =>
  proof.outcome === 'irregular' ||
  proof.outcome === 'gone' ||
  (proof.outcome === 'equal' && reasonOf(proof, null) === undefined);

interface ProofOptions {
  readonly mirrorDirectory: string;
  readonly store: Store;
  readonly remote: Remote;
  /** Brings what comes directly, and the list of the cluster; left out beside another owner of the state. */
  readonly results?: Results;
  readonly direct?: DirectBytes | null;
  readonly signal: AbortSignal;
}

export interface Verification {
  readonly files: readonly Verified[];
  /** What the cluster listed; null if it was not asked. */
  readonly cluster: { readonly files: number; readonly links: number } | null;
}

export interface VerifyOptions extends ProofOptions {
  readonly isComplete: boolean;
  /** Removes secrets: a name of a file comes from outside. */
  readonly hide: (text: string) => string;
  readonly onVerified?: (one: Verified) => void;
}

export async function verifyJob(jobId: JobId, options: VerifyOptions): Promise<Verification> {
  const { results, remote, isComplete, hide, onVerified, signal } = options;
  // First: without it, no download is worth its time.
  const cluster = isComplete ? await results?.listCluster(jobId, remote, signal) : undefined;
  const files: Verified[] = [];
  for await (const { name, proof } of proofs(jobId, options, cluster)) {
    const one = { name: hide(name), proof };
    files.push(one);
    onVerified?.(one);
  }
  return { files, cluster: cluster === undefined ? null : { files: cluster.files.length, links: cluster.links } };
}

/** `cluster`: the files that the cluster itself lists; undefined: only those of the service are compared. */
export async function* proofs(
  jobId: JobId,
  { mirrorDirectory, store, remote, results, direct, signal }: ProofOptions,
  cluster?: ClusterList,
): AsyncGenerator<Verified> {
  const listed = await remote.listChangedFiles(jobId, signal);
  const rows = store.liveFiles.ofJob(jobId).sort(byTaskAndFile);
  const download = { remote, direct, jobId, signal };
  const { capabilities } = store;
  const absent = await absentFiles(rows, download);
  const live = await proveMirrors(rows, { ...download, mirrorDirectory, capabilities, listed, absent });
  if (rows.length === 0) yield { name: 'live files', proof: unproven(NO_LIVE_FILES) };
  const missing = new Set(listed);
  const sources = new Map<string | null, string | null>();
  const known = new KnownPaths();
  for (const [index, row] of rows.entries()) {
    const found = live[index];
    const isFailed = found === undefined || found instanceof JobtailError;
    const one = isFailed ? { proof: unproven(found?.message ?? ''), listedName: row.listedName } : found;
    if (one.listedName !== null) missing.delete(one.listedName);
    sources.set(keyText(row), one.listedName);
    known.addLive(row, one.listedName, one.proof);
    yield { name: `task ${row.taskId} ${row.file}`, proof: one.proof };
  }
  const brought = new Map<string, Proof>();
  const notBrought = await results?.bringAgain(jobId, {
    remote,
    signal,
    onFile: async ({ row, target }, arrived) => void brought.set(row.name, await proveBrought(target, arrived, signal)),
    onIrregular: ({ row }, kind) => brought.set(row.name, { ...unproven(`it is ${kind}`), inPlace: 'nothing' }),
  });
  const withoutFile = new Map<string, FileProof>();
  for (const row of store.results.ofJob(jobId)) {
    const found = resultPath(row.name);
    if (isIrregular(row)) {
      // What refuses without a hang is asked again: a link may lead to a file by now.
      const isAsked = missing.has(row.name) && row.hangs === 0;
      const proof = isAsked ? await proveNoFile(row, download) : undefined;
      withoutFile.set(row.name, proof ?? { outcome: 'irregular', reason: row.reason ?? '' });
      continue;
    }
    if (row.fetchedAt === null || 'refused' in found) {
      const reason = `${row.state}${row.reason === null ? '' : `: ${row.reason}`}`;
      withoutFile.set(row.name, { outcome: 'missing', reason });
      continue;
    }
    const isListed = missing.delete(row.name);
    const placed = path.join(resultsDirectory(mirrorDirectory, jobId), ...found.parts);
    const mirror = row.live === null ? undefined : await mirrorBehind(placed, row.live, mirrorDirectory, jobId);
    // An empty mirror may be compared with no listed file. One that equals several may equal only the start of this one.
    if (mirror !== undefined && sources.get(row.live) === row.name) continue;
    const local = mirror ?? placed;
    const byService = () => (row.hangs > 0 ? notForService(notBrought) : proveResult(local, row.name, download));
    const compared = brought.get(row.name) ?? (await byService());
    const proof = (await goneBy(compared, isListed, local, row)) ?? compared;
    known.add(row.name, proof);
    yield { name: printable(row.name), proof };
  }
  const unknown = store.jobs.get(jobId)?.results === true ? 'never fetched' : 'results of this job are off';
  for await (const name of inSlices(missing)) {
    const proof = withoutFile.get(name) ?? ({ outcome: 'missing', reason: unknown } as const);
    known.add(name, proof);
    yield { name: printable(name), proof };
  }
  for await (const { name, bytes } of inSlices(cluster?.files ?? [])) {
    const proof = proofOnCluster(name, bytes, known.find(name));
    if (proof !== undefined) yield { name: printable(`/${name}`), proof };
  }
}

type FileProof = Verified['proof'];

/** What is known of a file of the cluster; undefined if nothing is to be added to it. */
function proofOnCluster(name: string, bytes: number, known: FileProof | undefined): FileProof | undefined {
  if (known === undefined && name.includes('\uFFFD'))
    return { outcome: 'missing', reason: 'its name is not UTF-8, so nothing brings it: rename it on the cluster' };
  if (known === undefined) {
    return { outcome: 'missing', reason: `the service does not list it; the cluster does (${showBytes(bytes)})` };
  }
  if (known.outcome !== 'equal' || known.bytes !== known.remoteBytes || known.bytes === bytes) return undefined;
  return unproven(`the cluster lists it with ${bytes} bytes`, known.bytes);
}

/** The compared files by their path on the cluster. */
class KnownPaths {
  readonly #byPath = new Map<string, FileProof>();
  /** Live files whose listed name is unknown, by the end of their path. */
  readonly #byEnd = new Map<string, FileProof>();

  add(listedName: string, proof: FileProof): void {
    this.#byPath.set(partsOf(listedName).join('/'), proof);
  }

  addLive({ relativePath }: LiveFileRow, listedName: string | null, proof: FileProof): void {
    if (listedName !== null) this.add(listedName, proof);
    else if (relativePath !== null) this.#byEnd.set(partsOf(relativePath).join('/'), proof);
  }

  find(name: string): FileProof | undefined {
    const parts = name.split('/');
    const ends = parts.map((_, from) => this.#byEnd.get(parts.slice(from).join('/')));
    return this.#byPath.get(name) ?? ends.find((proof) => proof !== undefined);
  }
}

/** The path of the mirror, if the link leads to it. */
async function mirrorBehind(link: string, live: string, directory: string, jobId: JobId): Promise<string | undefined> {
  const mirror = path.join(path.resolve(directory), jobId, 'live', `${live}.log`);
  const text = await fs.readlink(link).catch(() => undefined);
  return text !== undefined && path.resolve(path.dirname(link), text) === mirror ? mirror : undefined;
}

/** Of a result without a file on the server: what is there, and here; undefined if the copy is not as it was fetched. */
async function goneBy(
  compared: Proof,
  isListed: boolean,
  local: string,
  { sha256 }: ResultRow,
): Promise<FileProof | undefined> {
  const isNoFile = compared.outcome === 'unproven' && (!isListed || compared.inPlace === 'nothing');
  if (!isNoFile) return undefined;
  const there = isListed ? `there is no file any more: ${compared.reason}` : 'the service lists it no more';
  const gone = (reason: string) => ({ outcome: 'gone', reason }) as const;
  const stat = await fs.lstat(local).catch((error: NodeJS.ErrnoException) => error.code);
  const isReplaced = typeof stat === 'string' ? stat === 'ENOTDIR' : stat?.isDirectory();
  if (isReplaced && !isListed) return gone(`${there}, and another result needs its path here`);
  const digest = await digestOf(fileCalls(true), local).catch(() => undefined);
  return sha256 !== null && digest?.sha256 === sha256 ? gone(there) : undefined;
}

/** Undefined: the service refuses it, as before. */
async function proveNoFile(row: ResultRow, { remote, jobId, signal }: DownloadOptions): Promise<FileProof | undefined> {
  try {
    const sink = () => {
      throw new Enough();
    };
    await remote.downloadFile(jobId, row.name, sink, signal);
  } catch (thrown) {
    const error = thrown instanceof Enough ? undefined : asJobtailError(thrown);
    if (error?.policy.ofOneFile === 'no') throw error;
    const isStill = error?.policy.isRefusal === true && isStillNoFile(row, error.inPlace);
    if (error !== undefined) return isStill ? undefined : unproven(error.message);
  }
  return { outcome: 'missing', reason: 'it is a file by now' };
}

/** What the service failed to send before, and SSH brought. */
function notForService(failure: JobtailError | undefined): Proof {
  return unproven(`only a direct transfer brings it, and none did: ${failure?.message ?? 'it is not there'}`);
}

async function proveResult(local: string, name: string, options: DownloadOptions): Promise<Proof> {
  const refused = options.remote.reasonAgainst?.(name);
  return refused === undefined ? await proveWhole(local, () => proveFile(local, name, options)) : unproven(refused);
}

/** `arrived`: what the cluster has now. */
function proveBrought(local: string, arrived: string, signal: AbortSignal): Promise<Proof> {
  return proveWhole(local, async () => {
    const copy = await fs.open(arrived, READ);
    return await compareFile(local, (sink) => send(copy, sink, signal)).finally(() => copy.close());
  });
}

/** A result must equal the whole file, not just its start. A file that cannot be read does not stop the others. */
async function proveWhole(local: string, compare: () => Promise<Proof>): Promise<Proof> {
  try {
    const proof = await compare();
    if (proof.outcome !== 'equal' || proof.bytes === proof.remoteBytes) return proof;
    return { ...proof, outcome: 'different', at: proof.bytes };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') {
      return unproven(`${local} is missing`);
    }
    const error = asJobtailError(thrown);
    if (error.policy.ofOneFile === 'no') throw error;
    return unproven(error.message);
  }
}
