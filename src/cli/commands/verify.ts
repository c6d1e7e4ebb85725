/** `agent verify JOB`: compares every mirror and result with the raw bytes of the server. Changes nothing. */
import { isHere, type Verification, type Verified, verifyJob } from '../../agent/pass/verification.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { connect, passingCapabilities } from '../../daemon/connection.ts';
import { type OwnedStore, withStore } from '../../daemon/own-state.ts';
import { requireWatched } from '../../daemon/state.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { countOf, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Store } from '../../store/store.ts';
import { askRunningAgent } from '../ask-agent.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { readJobs } from '../followed-jobs.ts';
import { withEngine, withOwnState } from '../own-engine.ts';
import { commandLog, untilStopped } from '../process.ts';
import { jsonReport } from '../show/json.ts';

/** What the listing of the service leaves out (docs/dev/rest.md 5, docs/guarantees.md). */
const NEVER_LISTED =
  'not compared: files that the service never lists, such as those with an older date (tar -x, cp -p), those outside of the directories of the tasks, and those written in the second of the submission (by SSH, --complete finds them)';

interface VerifyOptions extends JsonOption {
  readonly complete?: boolean;
}

export async function verify(jobId: JobId, options: VerifyOptions): Promise<void> {
  const config = await configurationAsOwner(options);
  const { complete: isComplete = false, json = false } = options;
  let printed = 0;
  const onVerified = (one: Verified) => {
    printed += 1;
    if (!json) process.stdout.write(`${lineOf(one)}\n`);
  };
  const wanted = (signal: AbortSignal) => ({ config, jobId, isComplete, onVerified, signal });
  const verification = await untilStopped((signal) => verificationOf(wanted(signal)));
  const { files, cluster } = verification;
  for (const one of files.slice(printed)) onVerified(one);
  const notCompared = cluster === null ? NEVER_LISTED : null;
  if (json) process.stdout.write(jsonReport({ jobId, ...verification, notCompared }));
  else process.stdout.write(`${conclusionOf(files)}\n${cluster === null ? NEVER_LISTED : clusterLine(cluster)}\n`);
  if (files.length === 0 || !files.every(isHere)) process.exitCode = EXIT.failed;
}

interface Wanted {
  readonly config: Config;
  readonly jobId: JobId;
  readonly isComplete: boolean;
  readonly onVerified: (one: Verified) => void;
  readonly signal: AbortSignal;
}

/** By the running agent, if it has the job; else by this process, as the owner of the state if no agent is. */
async function verificationOf(wanted: Wanted): Promise<Verification> {
  const { config, jobId, isComplete, signal } = wanted;
  const kind = isComplete ? 'verify-complete' : 'verify';
  const prepare = (store: Store) => store.jobs.get(jobId) !== undefined;
  const answer = await askRunningAgent<Verification>(config, { kind, jobId, prepare }, signal);
  if (answer !== undefined) return answer;
  if (hasFleet(config)) {
    if (!isComplete) return await readJobs(config, jobId, (store) => verifyByService(store, wanted));
    throw new JobtailError('usage', `--complete is for the machine whose agent follows job ${jobId}`, {
      hint: `agent status ${jobId} names the agent; run the command where it runs`,
    });
  }
  if (isComplete) return await withOwnState(config, (owned) => verifyAsOwner(owned, wanted));
  return await withStore(config, commandLog(), (store, owned) =>
    owned === undefined ? verifyByService(store, wanted) : verifyAsOwner(owned, wanted),
  );
}

async function verifyByService(store: Store, { config, jobId, ...options }: Wanted): Promise<Verification> {
  requireWatched(store, jobId);
  const { remote, secrets, close } = await connect(config, commandLog(), {
    capabilities: passingCapabilities(store.capabilities),
  });
  const hide = (text: string) => secrets.hide(text);
  try {
    const { directory: mirrorDirectory } = config.mirror;
    return await verifyJob(jobId, { ...options, mirrorDirectory, store, remote, hide });
  } finally {
    await close();
  }
}

/** The owner of the state records the temporary key for the cluster. */
async function verifyAsOwner(owned: OwnedStore, { config, jobId, ...options }: Wanted): Promise<Verification> {
  requireWatched(owned.store, jobId);
  const { signal } = options;
  return await withEngine({ config, owned, signal }, ({ pass, connection }) =>
    verifyJob(jobId, { ...options, ...pass, hide: (text) => connection.secrets.hide(text) }),
  );
}

function conclusionOf(verified: readonly Verified[]): string {
  if (verified.length === 0) return 'there is nothing to compare yet';
  const isCompared = ({ proof }: Verified) => proof.outcome !== 'irregular' && proof.outcome !== 'gone';
  const regular = verified.filter(isCompared);
  const here = regular.filter(isHere);
  const missing = regular.filter(({ proof }) => proof.outcome === 'missing');
  const bytes = here.reduce((sum, { proof }) => sum + (proof.outcome === 'equal' ? proof.bytes : 0), 0);
  const rest = verified.length - regular.length;
  const others = rest === 0 ? '' : `; without content on the server: ${countOf(rest, 'file')}`;
  const files = countOf(regular.length, 'file');
  if (here.length === regular.length) return `all ${files} equal (${showBytes(bytes)})${others}`;
  const notHere = missing.length === 0 ? '' : `, ${missing.length} of them missing here`;
  return `${regular.length - here.length} of ${files} not equal, or not proven${notHere}${others}`;
}

function clusterLine({ files, links }: NonNullable<Verification['cluster']>): string {
  const notFollowed = links === 0 ? '' : `; not followed: ${countOf(links, 'link')}`;
  return `compared with the list of the cluster: ${countOf(files, 'file')}${notFollowed}`;
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
    case 'irregular':
      return `IRREGULAR  ${name}: ${printable(proof.reason)}`;
    case 'gone':
      return `GONE       ${name}: ${printable(proof.reason)}; the copy stays`;
    case 'missing':
      return `MISSING    ${name}: ${printable(proof.reason)}`;
  }
}
