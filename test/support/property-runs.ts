/**
 * A setup file of vitest, for all tests: a listener that is kept fails them. Properties: how often they are tried, also
 * those that say nothing else, and of which texts.
 */
import fc from 'fast-check';

// This file is loaded anew for each test file.
if (!process.listeners('warning').some(({ name }) => name === onWarning.name)) process.on('warning', onWarning);

/**
 * How often properties are tried: JOBTAIL_PROPERTY_TIMES multiplies it. `npm test` tries a tenth, to end
 * soon; `.ci/run` tries three tenths, `npm run test:nightly` ten times as many. A property that fails prints a seed
 * and a path; JOBTAIL_PROPERTY_SEED and JOBTAIL_PROPERTY_PATH repeat it (with `-t`: a path is that of one property).
 */
export const PROPERTY_TIMES = Number(process.env['JOBTAIL_PROPERTY_TIMES'] ?? 0.1);

/** So many runs of a property, for its parameters. */
export const numRuns = (count: number) => ({ numRuns: Math.ceil(count * PROPERTY_TIMES) });

const { JOBTAIL_PROPERTY_SEED: seed, JOBTAIL_PROPERTY_PATH: path } = process.env;

fc.configureGlobal({ ...numRuns(100), ...(seed && { seed: Number(seed) }), ...(path && { path }) });

/** Any character of Unicode: it takes seconds to make what fast-check calls the unit `binary`. */
export const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((point) => String.fromCodePoint(point));

function onWarning(warning: Error): void {
  if (warning.name === 'MaxListenersExceededWarning') throw new Error(warning.message);
}
