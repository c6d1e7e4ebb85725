/** What a verb and a path stand for in a release (docs/dev/rest.md 1.1, 1.2, 4.1). */

import type { Operation } from '../../src/operations.ts';
import { type Address, SIGN_IN_PATHS } from '../../src/remote/rest/contract.ts';
import { ADDRESSES, type Release, type Row } from '../../src/remote/rest/releases.ts';
import { HttpRefusal } from '../refusals.ts';
import { statusPage } from './problems.ts';
import { valueAt } from './releases.ts';

export type SignInMethod = keyof typeof SIGN_IN_PATHS;
export type Target =
  | { readonly operation: Operation; readonly address: Address }
  | { readonly signIn: SignInMethod; readonly address: Address };

/**
 * Throws what the release answers to a path that it does not have, or to another verb than it has (docs/dev/rest.md 1.1).
 */
export function targetAt(verb: string, path: string, release: Release): Target {
  const there = targetsOf(release).filter(({ address }) => address.path.toLowerCase() === path.toLowerCase());
  const target = there.find(({ address }) => address.verb === verb);
  if (target !== undefined) return target;
  if (release.unknownPath === 'empty') throw new HttpRefusal(500);
  if (there.length === 0) throw statusPage(404);
  throw statusPage(405, { allow: there.map(({ address }) => address.verb).join(', ') });
}

function targetsOf(release: Release): Target[] {
  const operations = Object.entries(ADDRESSES) as [Operation, Row<readonly Address[]>][];
  const signIns = Object.entries(SIGN_IN_PATHS) as [SignInMethod, Address['path']][];
  return [
    ...operations.flatMap(([operation, row]) => valueAt(row, release.name).map((address) => ({ operation, address }))),
    ...signIns
      .filter(([signIn]) => signIn !== 'external-token' || release.lexisToken)
      .map(([signIn, path]) => ({ signIn, address: { verb: 'POST', path } as const })),
  ];
}
