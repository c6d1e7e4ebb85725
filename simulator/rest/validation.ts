/** What the validators refuse before anything is looked up (docs/dev/rest.md 4.3). */

import { REQUEST } from '../../src/remote/rest/contract.ts';
import type { Release } from '../../src/remote/rest/releases.ts';
import type { RestRequest } from './operations.ts';
import { RestFailure } from './problems.ts';

const GUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** Throws all that is wrong, a line each. */
export function validate(request: RestRequest, release: Release): void {
  const { address, jobId, asked, name } = request;
  if (release.validates === 'none' || (release.validates === 'bodies' && address.verb === 'GET')) return;
  const messages = [
    ...(jobId === undefined ? [] : positive(jobId, REQUEST.jobId)),
    ...sessionMessages(request, release),
    ...(asked ?? []).flatMap((part) => (part?.taskId == null ? [] : positive(part.taskId, REQUEST.taskId))),
    ...(asked ?? []).flatMap((part) => ((part?.offset ?? 0n) < 0n ? ['Offset must be positive number'] : [])),
    ...(name === undefined || release.nameCharacters.test(name) ? [] : ['Path contains some illegal characters']),
  ];
  if (messages.length > 0) throw new RestFailure('invalid', messages.map((message) => `${message}\n`).join(''));
}

/** Those that look at the session first have found it. */
function sessionMessages({ sessionCode, address }: RestRequest, { headers }: Release): string[] {
  if (headers || GUID.test(sessionCode)) return [];
  const message = sessionCode === '' ? 'SessionCode cannot be empty.' : 'SessionCode has wrong format.';
  return [address.verb === 'GET' ? message : `${message}\n`];
}

function positive(id: string, member: string): string[] {
  return BigInt(id) > 0n ? [] : [`${member} must be greater than 0`];
}
