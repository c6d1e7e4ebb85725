/** Where the two services lie: each at its own name below the address of the sandbox. */
import { SERVICES, type ServiceName } from '../../src/remote/soap/contract.ts';
import type { SandboxHabits } from '../habits.ts';

/** The service at a path, if the quirks have it there. */
export function serviceAt(pathname: string, { jobService }: SandboxHabits): ServiceName | undefined {
  const service = (Object.keys(SERVICES) as ServiceName[]).find((name) => pathname === `/${name}`);
  return service === 'JobManagementWs' && !jobService ? undefined : service;
}

/** The address of a service, without a query. */
export function urlOf(baseUrl: string, service: ServiceName): string {
  return `${baseUrl}/${service}`;
}
