/** Tokens as issuers print them. */
import { describe, expect, it } from 'vitest';
import { expiryOf, tokenOf } from '../../../src/remote/signin/sign-in.ts';

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (claims: unknown) => `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`;
const TOKEN = jwt({ sub: 'alice' });

describe('a token', () => {
  it.each([
    TOKEN,
    `Bearer ${TOKEN}`,
    `bearer  ${TOKEN} `,
    `"${TOKEN}"`,
    `'${TOKEN}'`,
    `"Bearer ${TOKEN}"`,
    JSON.stringify({ access_token: TOKEN, expires_in: 300 }),
    JSON.stringify({ token_type: 'Bearer', access_token: `Bearer ${TOKEN}` }),
  ])('is read from %s', (text) => {
    expect(tokenOf(text)).toBe(TOKEN);
  });

  it.each(['{"error": "login"}', '{', '7', 'null', '"'])('that is none is sent as it is: %s', (text) => {
    expect(tokenOf(text)).toBe(text);
  });
});

describe('the end of a token', () => {
  const now = Date.UTC(2026, 10, 28);
  it.each([
    [jwt({ exp: now / 1000 - 60 }), 'the token expired on 2026-11-27T23:59:00.000Z'],
    [jwt({ exp: now / 1000 + 60 }), ''],
    [jwt({ exp: 'soon' }), ''],
    [jwt({ exp: -1e300 }), ''],
    [jwt([1]), ''],
    ['opaque', ''],
    ['a.b.c', ''],
  ])('of %s', (token, expected) => {
    expect(expiryOf(token, now)).toBe(expected);
  });
});
