/** Whose name and secret were shown, whatever protocol showed them. */
import { timingSafeEqual } from 'node:crypto';
import type { SandboxUser } from './sessions.ts';

export interface Credentials {
  readonly username: string;
  readonly secret: string;
  readonly kind: 'password' | 'token';
}

/** Undefined if they belong to no user. */
export function userWith(
  { username, secret, kind }: Credentials,
  users: readonly SandboxUser[],
): SandboxUser | undefined {
  const user = users.find((one) => one.username === username);
  return user !== undefined && equal(user[kind], secret) ? user : undefined;
}

function equal(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
