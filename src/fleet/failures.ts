/** What PostgreSQL, the way to it, and pg-boss throw, as failures of the one table. */
import { JobtailError } from '../errors.ts';
import { type Secrets, safeText } from '../redact.ts';

/** SQLSTATE classes and codes (PostgreSQL, appendix A), and what the way to the server says. */
const HINTS: readonly (readonly [code: RegExp, hint: string])[] = [
  [/^28/, 'look at the user and the password of the address, and at pg_hba.conf of the server'],
  [/^3D000$/, 'make the database: createdb -O USER DATABASE (docs/fleet.md)'],
  [/^42501$/, 'give the user of the agents the right to create a schema in the database (docs/fleet.md)'],
  [/^53300$/, 'raise max_connections of the server: an agent takes five'],
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT|ENOENT)$/,
    'look at the address, and whether the server runs',
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS)/,
    'name the authority with sslrootcert= in the address',
  ],
];
const USUAL_HINT = 'the agent goes on by itself when it is back; agent check looks at it';

/** `where` names the database without secrets. */
export function asFleetError(thrown: unknown, where: string, secrets: Secrets): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  const { code, message } = wordsOf(thrown);
  const hint = HINTS.find(([known]) => known.test(code))?.[1] ?? USUAL_HINT;
  // No cause: what the driver throws may hold the address.
  return new JobtailError(
    'fleet',
    `the database of the fleet (${where}) cannot be used: ${secrets.safeText(message)}`,
    {
      hint,
    },
  );
}

function wordsOf(thrown: unknown): { readonly code: string; readonly message: string } {
  // Of an address with several numbers, each has its failure.
  const one = thrown instanceof AggregateError ? (thrown.errors[0] as unknown) : thrown;
  if (!(one instanceof Error)) return { code: '', message: safeText(String(one), []) };
  const { code } = one as NodeJS.ErrnoException;
  return { code: typeof code === 'string' ? code : '', message: one.message === '' ? String(code) : one.message };
}
