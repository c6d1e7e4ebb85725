/** What the tests of a fleet need of the machine. */
import type { TestOptions } from 'vitest';
import { isFleetNodeThere } from '../../bench/fleet-node.ts';
import { needs, needsThat } from './needs.ts';

/** The options of a test or a suite that starts a fleet: it is skipped where that cannot be. */
export function needsFleet(): TestOptions & { readonly skip: boolean } {
  const words = 'a fleet needs Node.js 22.12 or newer; to get one for the tests: npm run setup:fleet';
  const node = needsThat(isFleetNodeThere(), words);
  const database = needs('postgres');
  return { ...database, skip: node.skip || database.skip, meta: { ...database.meta, ...node.meta } };
}
