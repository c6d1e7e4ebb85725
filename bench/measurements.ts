/** All measurements, in the order of the table. */

import { directLarge, directMany } from './direct-transfer.ts';
import { durability } from './durability.ts';
import { firstPoll, firstPollByRest } from './first-poll.ts';
import { fleetBudget, fleetLeases, fleetTakeover } from './fleet.ts';
import { growingJobs } from './growing-jobs.ts';
import { manyJobs } from './many-jobs.ts';
import type { Measurement } from './measurement.ts';
import { costOfAJob, quietJobs } from './quiet-jobs.ts';
import { resultByPackage, resultBySoap, resultMemory } from './result-by-soap.ts';
import { resultLayouts } from './result-layouts.ts';
import { viewers } from './viewers.ts';

export const MEASUREMENTS: readonly Measurement[] = [
  resultBySoap,
  resultByPackage,
  resultMemory,
  resultLayouts,
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
  fleetTakeover,
  fleetLeases,
  fleetBudget,
];
