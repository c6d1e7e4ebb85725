/** All measurements, in the order of the table. */

import { compression } from './compression.ts';
import { directByScp, directBySftp, directLarge, directMany, directNames } from './direct-transfer.ts';
import { durability } from './durability.ts';
import { firstPoll, firstPollByRest } from './first-poll.ts';
import { fleetBudget, fleetLeases, fleetRest, fleetTakeover } from './fleet.ts';
import { growingJobs } from './growing-jobs.ts';
import { idleMemory } from './idle-memory.ts';
import { latency } from './latency.ts';
import { manyJobs } from './many-jobs.ts';
import { longListing, manyResults } from './many-results.ts';
import type { Measurement } from './measurement.ts';
import { costOfAJob, quietJobs } from './quiet-jobs.ts';
import { resultByPackage, resultBySoap, resultMemory } from './result-by-soap.ts';
import { resultLayouts } from './result-layouts.ts';
import { searchOfMirrors } from './search.ts';
import { serverShare } from './server-share.ts';
import { syncOfNothing } from './sync-of-nothing.ts';
import { viewers } from './viewers.ts';
import { wan } from './wan.ts';

export const MEASUREMENTS: readonly Measurement[] = [
  resultBySoap,
  resultByPackage,
  resultMemory,
  resultLayouts,
  syncOfNothing,
  firstPoll,
  firstPollByRest,
  // Before those that leave thousands of files to be removed.
  directLarge,
  directMany,
  directByScp,
  directBySftp,
  directNames,
  quietJobs,
  costOfAJob,
  growingJobs,
  viewers,
  manyJobs,
  durability,
  searchOfMirrors,
  latency,
  serverShare,
  wan,
  compression,
  idleMemory,
  longListing,
  manyResults,
  fleetTakeover,
  fleetLeases,
  fleetRest,
  fleetBudget,
];
