/** All measurements, in the order of the table. */

import { directLarge, directMany } from './direct-transfer.ts';
import { durability } from './durability.ts';
import { firstPoll, firstPollByRest } from './first-poll.ts';
import { growingJobs } from './growing-jobs.ts';
import { idleMemory } from './idle-memory.ts';
import { manyJobs } from './many-jobs.ts';
import { longListing, manyResults } from './many-results.ts';
import type { Measurement } from './measurement.ts';
import { costOfAJob, quietJobs } from './quiet-jobs.ts';
import { resultBySoap, resultMemory } from './result-by-soap.ts';
import { resultLayouts } from './result-layouts.ts';
import { searchOfMirrors } from './search.ts';
import { syncOfNothing } from './sync-of-nothing.ts';
import { viewers } from './viewers.ts';
import { wan } from './wan.ts';

export const MEASUREMENTS: readonly Measurement[] = [
  resultBySoap,
  resultMemory,
  resultLayouts,
  syncOfNothing,
  firstPoll,
  firstPollByRest,
  // Before those that leave thousands of files to be removed.
  directLarge,
  directMany,
  quietJobs,
  costOfAJob,
  growingJobs,
  viewers,
  manyJobs,
  durability,
  searchOfMirrors,
  wan,
  idleMemory,
  longListing,
  manyResults,
];
