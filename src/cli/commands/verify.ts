/** `agent verify JOB`: compares every mirror and result with the raw bytes of the server. Changes nothing. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { type Proof, proveFile } from '../../agent/pass/comparison.ts';
import { proveMirrors } from '../../agent/pass/mirror-proofs.ts';
import type { Remote } from '../../agent/ports.ts';
import { resultsDirectory } from '../../agent/results/results.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { connect, passingCapabilities } from '../../daemon/connection.ts';
import { requireWatched, withSharedStore } from '../../daemon/state.ts';
import { asJobtailError, EXIT, JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { countOf, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Secrets } from '../../redact.ts';
import { resultPath } from '../../safe-names.ts';
import { inSlices } from '../../slices.ts';
import { byTaskAndFile } from '../../store/live-files.ts';
import type { Store } from '../../store/store.ts';
import { type ConfigOption, configurationAsOwner } from '../configuration.ts';
import { commandLog, untilStopped } from '../process.ts';
import { jsonReport } from '../show/json.ts';

/** What the listing of the service leaves out (docs/dev/rest.md 5, docs/guarantees.md). */
const NEVER_LISTED =
  'not compared: files that the service never lists, such as those with an older date (tar -x, cp -p), those outside of the directories of the tasks, and those written in the second of the submission';

/** A file and its proof; missing: listed, and not here. */
export interface Verified {
  readonly name: string;
  readonly proof: Proof | { readonly outcome: 'missing'; readonly reason: string };
}

interface VerifyOptions extends ConfigOption {
  readonly json?: boolean;
}

export async function verify(jobId: JobId, options: VerifyOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const work = (store: Store) => verifyBy(store, config, jobId, options);
  if (!hasFleet(config)) return await withSharedStore(config, work);
  const { readFleet, withView } = await import('../fleet/client.ts');
  await readFleet(config, (client) => withView({ config, client, only: jobId, withResults: true }, work));
}

async function verifyBy(store: Store, config: Config, jobId: JobId, options: VerifyOptions): Promise<void> {
  requireWatched(store, jobId);
  const connection = await connect(config, commandLog(), { capabilities: passingCapabilities(store.capabilities) });
  try {
    const verified = await untilStopped((signal) =>
      verifyAll({ config, store, jobId, remote: connection.remote, signal }, connection.secrets, options),
    );
    if (options.json === true) process.stdout.write(jsonReport({ jobId, files: verified, notCompared: NEVER_LISTED }));
    else process.stdout.write(`${conclusionOf(verified)}\n${NEVER_LISTED}\n`);
    if (verified.length === 0 || !verified.every(isHere)) process.exitCode = EXIT.failed;
  } finally {
    await connection.close();
  }
}

async function verifyAll(what: ProofsOptions, secrets: Secrets, { json }: VerifyOptions): Promise<Verified[]> {
  const verified: Verified[] = [];
  for await (const { name, proof } of proofs(what)) {
    const one = { name: secrets.hide(name), proof };
    verified.push(one);
    if (json !== true) process.stdout.write(`${lineOf(one)}\n`);
  }
  return verified;
}

/** Whether the original could be deleted: every byte of it is here. */
export const isHere = ({ proof }: Verified) => proof.outcome === 'equal' && proof.bytes === proof.remoteBytes;

interface ProofsOptions {
  readonly config: Config;
  readonly store: Store;
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly signal: AbortSignal;
}

export async function* proofs({ config, store, jobId, remote, signal }: ProofsOptions): AsyncGenerator<Verified> {
  const { directory } = config.mirror;
  const listed = await remote.listChangedFiles(jobId, signal);
  const rows = store.liveFiles.ofJob(jobId).sort(byTaskAndFile);
  const options = { remote, jobId, signal, mirrorDirectory: directory, listed, mayBe: () => true };
  const live = await proveMirrors(rows, options);
  const missing = new Set(listed);
  const sources = new Map<string | null, string | null>();
  for (const [index, row] of rows.entries()) {
    const one = live[index];
    if (one === undefined || one instanceof JobtailError) throw one;
    if (one.listedName !== null) missing.delete(one.listedName);
    sources.set(keyText(row), one.listedName);
    yield { name: `task ${row.taskId} ${row.file}`, proof: one.proof };
  }
  const reasons = new Map<string, string>();
  for (const row of store.results.ofJob(jobId)) {
    const found = resultPath(row.name);
    if (row.fetchedAt === null || 'refused' in found) {
      reasons.set(row.name, `${row.state}${row.reason === null ? '' : `: ${row.reason}`}`);
      continue;
    }
    missing.delete(row.name);
    const placed = path.join(resultsDirectory(directory, jobId), ...found.parts);
    const mirror = row.live === null ? undefined : await mirrorBehind(placed, row.live, directory, jobId);
    // An empty mirror was compared with no listed file. One that equals several may equal only the start of this one.
    if (mirror !== undefined && sources.get(row.live) === row.name) continue;
    yield { name: printable(row.name), proof: await proveResult(mirror ?? placed, row.name, options) };
  }
  const unknown = store.jobs.get(jobId)?.results === true ? 'never fetched' : 'results of this job are off';
  for await (const name of inSlices(missing)) {
    const reason = reasons.get(name) ?? unknown;
    yield { name: printable(name), proof: { outcome: 'missing', reason } };
  }
}

/** The path of the mirror, if the link leads to it. */
async function mirrorBehind(link: string, live: string, directory: string, jobId: JobId): Promise<string | undefined> {
  const mirror = path.join(path.resolve(directory), jobId, 'live', `${live}.log`);
  const text = await fs.readlink(link).catch(() => undefined);
  return text !== undefined && path.resolve(path.dirname(link), text) === mirror ? mirror : undefined;
}

/** A result must equal the whole file, not just its start. A file that cannot be read does not stop the others. */
async function proveResult(local: string, name: string, options: Parameters<typeof proveFile>[2]): Promise<Proof> {
  const refused = options.remote.reasonAgainst?.(name);
  if (refused !== undefined) return { outcome: 'unproven', bytes: 0, reason: refused };
  try {
    const proof = await proveFile(local, name, options);
    if (proof.outcome !== 'equal' || proof.bytes === proof.remoteBytes) return proof;
    return { ...proof, outcome: 'different', at: proof.bytes };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') {
      return { outcome: 'unproven', bytes: 0, reason: `${local} is missing` };
    }
    const error = asJobtailError(thrown);
    if (error.policy.ofOneFile === 'no' && !error.policy.isRefusal) throw error;
    return { outcome: 'unproven', bytes: 0, reason: error.message };
  }
}

function conclusionOf(verified: readonly Verified[]): string {
  if (verified.length === 0) return 'there is nothing to compare yet';
  const here = verified.filter(isHere);
  const missing = verified.filter(({ proof }) => proof.outcome === 'missing');
  const bytes = here.reduce((sum, { proof }) => sum + (proof.outcome === 'equal' ? proof.bytes : 0), 0);
  if (here.length === verified.length) return `all ${countOf(verified.length, 'file')} equal (${showBytes(bytes)})`;
  const notHere = missing.length === 0 ? '' : `, ${missing.length} of them missing here`;
  return `${verified.length - here.length} of ${countOf(verified.length, 'file')} not equal, or not proven${notHere}`;
}

function lineOf({ name, proof }: Verified): string {
  switch (proof.outcome) {
    case 'equal': {
      const more = proof.remoteBytes - proof.bytes;
      if (more > 0)
        return `BEHIND     ${name} (${showBytes(proof.bytes)}; the server has ${showBytes(more)} more by now)`;
      return `equal      ${name} (${showBytes(proof.bytes)})`;
    }
    case 'different':
      return `DIFFERENT  ${name}: first at byte ${proof.at} (${proof.bytes} bytes here, ${proof.remoteBytes} on the server)`;
    case 'unproven':
      return `UNPROVEN   ${name}: ${printable(proof.reason)}`;
    case 'missing':
      return `MISSING    ${name}: ${printable(proof.reason)}`;
  }
}
