/** A setup file of vitest: what holds for properties that say nothing else (property-runs.ts). */
import fc from 'fast-check';
import { numRuns } from './property-runs.ts';

const { JOBTAIL_PROPERTY_SEED: seed, JOBTAIL_PROPERTY_PATH: path } = process.env;

fc.configureGlobal({ ...numRuns(100), ...(seed && { seed: Number(seed) }), ...(path && { path }) });
