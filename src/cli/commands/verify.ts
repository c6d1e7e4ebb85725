/** `agent verify JOB`: compares every mirror and result with the raw bytes of the server. Changes nothing. */
import { isHere, type Verification, type Verified, verifyJob } from '../../agent/pass/verification.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { connect, passingCapabilities } from '../../daemon/connection.ts';
import { requireWatched, SharedState } from '../../daemon/state.ts';
import { EXIT, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import { countOf, showBytes } from '../../numbers.ts';
import { printable } from '../../printable.ts';
import type { Store } from '../../store/store.ts';
import { askSocket, isOfAnother } from '../agent-socket.ts';
import { askAgent, askServed } from '../ask-agent.ts';
import { configurationAsOwner, type JsonOption } from '../configuration.ts';
import { commandLog, untilStopped } from '../process.ts';
import { NEVER_LISTED, verificationReport } from '../show/pass.ts';

interface VerifyArguments extends JsonOption {
  readonly complete?: boolean;
}

export async function verify(jobId: JobId, options: VerifyArguments): Promise<void> {
  const config = await configurationAsOwner(options);
  const { complete: isComplete = false, json = false } = options;
  let printed = 0;
  const onVerified = (one: Verified) => {
    printed += 1;
    if (!json) process.stdout.write(`${lineOf(one)}\n`);
  };
  const verification = await verificationOf({ config, jobId, isComplete, onVerified });
  const { files, cluster } = verification;
  for (const one of files.slice(printed)) onVerified(one);
  if (json) process.stdout.write(jsonReport(verificationReport(jobId, verification)));
  else process.stdout.write(`${conclusionOf(files)}\n${cluster === null ? NEVER_LISTED : clusterLine(cluster)}\n`);
  if (!files.every(isHere)) process.exitCode ||= EXIT.failed;
}

interface WantedJob {
  readonly config: Config;
  readonly jobId: JobId;
  readonly isComplete: boolean;
  readonly onVerified: (one: Verified) => void;
}

/** By the process that serves the state; in a fleet, by its agent here if it has the job, else by the service. */
async function verificationOf(wanted: WantedJob): Promise<Verification> {
  const { config, jobId, isComplete } = wanted;
  const request = { kind: isComplete ? 'verify-complete' : 'verify', jobId } as const;
  if (isOfAnother(config))
    return await untilStopped((signal) =>
      askSocket<Verification>(config, { path: `jobs/${jobId}/verification?complete=${Number(isComplete)}`, signal }),
    );
  const prepare = (store: Store) => void requireWatched(store, jobId);
  if (!hasFleet(config)) return await askServed<Verification>(config, { ...request, prepare });
  return await untilStopped(async (signal) => {
    const isHere = new SharedState(config).use((store) => store.jobs.get(jobId) !== undefined) === true;
    const answer = isHere ? await askAgent<Verification>(config, { ...request, prepare }, signal) : undefined;
    if (answer !== undefined) return answer;
    if (!isComplete) {
      const { jobsOfFleet } = await import('../fleet/client.ts');
      const jobs = jobsOfFleet(config);
      return await jobs.of(jobId, (store) => verifyByService(store, wanted, signal), [jobId]).finally(jobs.close);
    }
    throw new JobtailError('usage', `--complete is for the machine whose agent follows job ${jobId}`, {
      hint: `agent status ${jobId} names the agent; run the command where it runs`,
    });
  });
}

async function verifyByService(store: Store, wanted: WantedJob, signal: AbortSignal): Promise<Verification> {
  const { config, jobId, ...options } = wanted;
  requireWatched(store, jobId);
  const { remote, secrets, close } = await connect(config, commandLog(), {
    capabilities: passingCapabilities(store.capabilities),
  });
  const hide = (text: string) => secrets.hide(text);
  try {
    const { directory: mirrorDirectory } = config.mirror;
    return await verifyJob(jobId, { ...options, mirrorDirectory, store, remote, hide, signal });
  } finally {
    await close();
  }
}

function conclusionOf(verified: readonly Verified[]): string {
  const isCompared = ({ proof }: Verified) => proof.outcome !== 'irregular' && proof.outcome !== 'gone';
  const regular = verified.filter(isCompared);
  const here = regular.filter(isHere);
  const missing = regular.filter(({ proof }) => proof.outcome === 'missing');
  const bytes = here.reduce((sum, { proof }) => sum + (proof.outcome === 'equal' ? proof.bytes : 0), 0);
  const rest = verified.length - regular.length;
  const others = rest === 0 ? '' : `; without content on the server: ${countOf(rest, 'file')}`;
  const files = countOf(regular.length, 'file');
  const all = regular.length === 1 ? '' : 'all ';
  if (here.length === regular.length) return `${all}${files} equal (${showBytes(bytes)})${others}`;
  const notHere = missing.length === 0 ? '' : `, ${missing.length} of them missing here`;
  return `${regular.length - here.length} of ${files} not equal, or not proven${notHere}${others}`;
}

function clusterLine({ files, links }: NonNullable<Verification['cluster']>): string {
  const notFollowed = links === 0 ? '' : `; not followed: ${countOf(links, 'link')}`;
  return `compared with the list of the cluster: ${countOf(files, 'file')}${notFollowed}`;
}

function lineOf({ name, proof }: Verified): string {
  const start = `${proof.outcome.toUpperCase().padEnd(10)} ${name}`;
  if (proof.outcome === 'different')
    return `${start}: first at byte ${proof.at} (${proof.bytes} bytes here, ${proof.remoteBytes} on the server)`;
  if (proof.outcome !== 'equal')
    return `${start}: ${printable(proof.reason)}${proof.outcome === 'gone' ? '; the copy stays' : ''}`;
  const more = proof.remoteBytes - proof.bytes;
  if (more > 0) return `BEHIND     ${name} (${showBytes(proof.bytes)}; the server has ${showBytes(more)} more by now)`;
  return `equal      ${name} (${showBytes(proof.bytes)})`;
}
