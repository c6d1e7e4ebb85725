/** What the configuration says of the service, whatever its protocol. */
import type { Config } from './config.ts';

type Service = Config['service'];

/** The addresses of the service and of its sign-in. */
export function addressesOf(service: Service): string[] {
  const urls = service.protocol === 'soap' ? [service.fileTransferUrl, service.baseUrl] : [service.baseUrl];
  return urls.filter((url) => url !== null);
}

/** The address that the habits of a service are kept by. */
export function serviceAddress(service: Service): string {
  return service.protocol === 'soap' ? service.fileTransferUrl : `${service.baseUrl}${service.path}`;
}

/** Whether there is a service that tells of jobs: over REST it is part of the others. */
export function tellsOfJobs(service: Service): boolean {
  return service.protocol === 'rest' || service.jobsUrl !== null;
}
