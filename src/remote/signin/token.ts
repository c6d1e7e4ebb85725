/** Tokens as their issuers print them: with `Bearer`, in quotes, or in the JSON of a token endpoint. */

/** The token alone. */
export function tokenOf(text: string): string {
  const { access_token: found = text } = objectOf(text);
  return String(found)
    .trim()
    .replace(/^"(.+)"$|^'(.+)'$/, '$1$2')
    .replace(/^bearer\s+/i, '')
    .trim();
}

/** Why a JSON web token may be refused: it is too old by the clock of this machine; '' if it is not, or is none. */
export function expiryOf(token: string, now: number): string {
  const { exp } = objectOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const endsAt = typeof exp === 'number' ? exp * 1000 : Number.NaN;
  const date = new Date(endsAt);
  return endsAt < now && !Number.isNaN(date.getTime()) ? `the token expired on ${date.toISOString()}` : '';
}

/** The members of a JSON object; none of anything else. */
function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
