/** What of a grant goes into the headers of a call, and what of it is a secret. */
import type { Grant } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';

/** The header of releases that take the user's name and password with every call (docs/rest.md 4.1). */
const API_KEY_HEADER = 'x-api-key';

/** The part of a grant that nothing may show. */
export function secretOf(grant: Grant): string {
  switch (grant.kind) {
    case 'session':
      return grant.code;
    case 'bearer':
      return grant.token;
    case 'api-key':
      return grant.key;
  }
}

/** The headers that show a grant; none for a session code, which has its place among the arguments. */
export function grantHeaders(grant: Grant): Readonly<Record<string, string>> {
  if (grant.kind === 'session') return {};
  const secret = secretOf(grant);
  if (!/^[\x20-\x7e]+$/.test(secret) || (grant.kind === 'bearer' && secret.includes(' '))) {
    const what = grant.kind === 'bearer' ? 'token' : 'user name or password';
    throw new JobtailError('config', `the ${what} holds characters that no HTTP header can hold`, {
      hint: 'look at what the file or the command in the section auth yields',
    });
  }
  return grant.kind === 'bearer' ? { authorization: `Bearer ${secret}` } : { [API_KEY_HEADER]: secret };
}
