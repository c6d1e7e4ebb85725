/** The services of the agent's ports, by the protocol of the configuration: the one place that knows which it is. */
import type { JobService, Log, Remote } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { serviceAddress } from '../config/service-address.ts';
import type { SpillPlace } from '../remote/content/spill-file.ts';
import type { HttpClient } from '../remote/http/http-client.ts';
import { RestRemote } from '../remote/rest/client.ts';
import { type KeptHabits, RestHabits } from '../remote/rest/habits.ts';
import { RestJobService } from '../remote/rest/job-service.ts';
import type { SessionCallsOptions } from '../remote/session-calls.ts';
import { SoapRemote } from '../remote/soap/client.ts';
import { SoapJobService } from '../remote/soap/job-service.ts';
import { systemClock } from '../system/clock.ts';

const SMALL_ANSWER_BYTES = 32 * 1024 * 1024;

export interface Services {
  readonly remote: Remote;
  /** Null where the configuration says nothing of it. */
  readonly jobService: JobService | null;
}

interface ServicesOptions {
  readonly calls: SessionCallsOptions & {
    readonly http: HttpClient;
    readonly isSessionFault: (words: string) => boolean;
  };
  readonly spill: SpillPlace;
  readonly habits: KeptHabits;
  readonly log: Log;
}

export function servicesOver(service: Config['service'], options: ServicesOptions): Services {
  const { calls, spill, habits: kept, log } = options;
  const ofFiles = { ...calls, spill, maxSmallAnswerBytes: SMALL_ANSWER_BYTES };
  if (service.protocol === 'soap') {
    const { namespace, soapVersion, fileTransferUrl, jobsUrl } = service;
    return {
      remote: new SoapRemote({ ...ofFiles, namespace, soapVersion, url: fileTransferUrl }),
      jobService: jobsUrl === null ? null : new SoapJobService({ ...calls, namespace, soapVersion, url: jobsUrl }),
    };
  }
  const url = serviceAddress(service);
  const onChange = (what: string) => log.info({ what }, `the service is not as it was before: ${what}`);
  const habits = new RestHabits({ kept, onChange, now: systemClock.monotonic });
  return {
    remote: new RestRemote({ ...ofFiles, url, habits }),
    jobService: new RestJobService({ ...calls, url, habits }),
  };
}
