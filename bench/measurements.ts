/** All measurements, in the order of the table. */

import { directLarge, directMany } from './direct-transfer.ts';
import { firstPoll } from './first-poll.ts';
import { growingJobs } from './growing-jobs.ts';
import { idleMemory } from './idle-memory.ts';
import { manyJobs } from './many-jobs.ts';
import { manyResults } from './many-results.ts';
import type { Measurement } from './measurement.ts';
import { quietJobs } from './quiet-jobs.ts';
import { result, resultMemory } from './result.ts';
import { syncOfNothing } from './sync-of-nothing.ts';
import { wan } from './wan.ts';

export const MEASUREMENTS: readonly Measurement[] = [
  result,
  resultMemory,
  syncOfNothing,
  firstPoll,
  // Before those that leave thousands of files to be removed.
  directLarge,
  directMany,
  quietJobs,
  growingJobs,
  manyJobs,
  wan,
  idleMemory,
  manyResults,
];
