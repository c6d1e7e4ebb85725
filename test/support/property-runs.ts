/**
 * How often properties are tried: JOBTAIL_PROPERTY_TIMES multiplies it. `npm test` tries a tenth, to end
 * soon; `.ci/run` tries three tenths, `npm run test:nightly` ten times as many. A property that fails prints a seed
 * and a path; JOBTAIL_PROPERTY_SEED and JOBTAIL_PROPERTY_PATH repeat it (with `-t`: a path is that of one property).
 */
export const PROPERTY_TIMES = Number(process.env['JOBTAIL_PROPERTY_TIMES'] ?? 0.1);

/** So many runs of a property, for its parameters. */
export const numRuns = (count: number) => ({ numRuns: Math.ceil(count * PROPERTY_TIMES) });
