/** `agent check`: health and release of the server, and how it reports jobs and tasks. */
import { performance } from 'node:perf_hooks';
import * as v from 'valibot';
import type { CapabilityStore, JobService } from '../../agent/ports/server.ts';
import type { Config } from '../../config/config.ts';
import { wayTo } from '../../daemon/connection.ts';
import { countOf } from '../../numbers.ts';
import { RestCapabilities } from '../../remote/rest/capabilities.ts';
import { systemClock } from '../../system/clock.ts';
import { answerOf, jobsUrlBeside, jsonOf } from './description.ts';
import { type Finding, note, ok, warning } from './findings.ts';

const MAX_SHOWN = 60;

const UNHEALTHY = v.object({ IsHealthy: v.literal(false) });
const HEALTH = v.object({
  IsHealthy: v.boolean(),
  Version: v.nullish(v.string()),
  Component: v.nullish(v.record(v.string(), v.unknown())),
});

/** Releases before V6.0 have no such page. */
export async function healthOf(config: Config, signal: AbortSignal): Promise<Finding[]> {
  const { service } = config;
  if (service.protocol !== 'rest') return [];
  const address = `${service.baseUrl}${service.path}/Health`;
  const answer = await answerOf(address, signal, await wayTo(config));
  const { success, output } = v.safeParse(HEALTH, answer && jsonOf(answer.text));
  if (!success) return [note('not reported by this server (V6.0 and later have a page for it)')];
  const version = (output.Version ?? '').slice(0, MAX_SHOWN);
  const shown = version === '' ? [] : [note(`version set by its operator: ${JSON.stringify(version)} (not used)`)];
  if (output.IsHealthy) return [ok('the server reports that it is healthy'), ...shown];
  const parts = Object.entries(output.Component ?? {}).filter(([, part]) => v.is(UNHEALTHY, part));
  const names = parts.map(([name]) => name.slice(0, MAX_SHOWN)).join(', ');
  const what = names === '' ? '' : `: ${names}`;
  return [warning(`the server reports that it is not healthy${what}`, 'ask its operator'), ...shown];
}

const ASKED = {
  listed: 'by their listed names',
  'below the job': 'by their listed names below the id of the job',
} as const;

export function restCapabilitiesOf(kept: CapabilityStore): Finding[] {
  const capabilities = new RestCapabilities({ kept, onChange: () => {}, now: systemClock.monotonic });
  const { addresses, pathForm } = capabilities.known;
  return [
    ...addresses.map((address) => note(address)),
    ...(pathForm === undefined ? [] : [note(`files are requested ${ASKED[pathForm]}`)]),
  ];
}

const BY_FILES = 'tasks are found by probes for their files, and job states are not reported';
const ENDS = 'a job ends by agent unwatch, or after settleAfterMinutes';

/** @throws JobtailError of a configured service that does not respond */
export async function checkJobs(
  config: Config,
  jobService: JobService | null,
  signal: AbortSignal,
): Promise<Finding[]> {
  if (jobService !== null) {
    const startedAt = performance.now();
    const jobs = await jobService.listJobs(signal);
    const running = jobs.filter(({ state }) => state === 'Running').length;
    const took = `${Math.round(performance.now() - startedAt)} ms`;
    const reported = `${config.service.protocol === 'soap' ? 'JobManagementWs' : 'JobManagement of REST, with nothing to configure,'} reports ${countOf(jobs.length, 'job')}, ${running} of them running, in ${took}`;
    return [ok(`${reported}: tasks and job states come from it`)];
  }
  const { service } = config;
  const found = service.protocol === 'soap' ? await jobsUrlBeside(service, signal, await wayTo(config)) : undefined;
  if (found !== undefined)
    return [{ mark: 'note', text: BY_FILES, hint: `JobManagementWs answers: set service.jobsUrl to ${found}` }];
  const hint = 'set service.jobsUrl to the address of JobManagementWs, if there is one';
  return [{ mark: 'note', text: `${BY_FILES}: ${ENDS}`, hint }];
}
