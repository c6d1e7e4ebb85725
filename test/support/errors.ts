/** An error that must come, and a log that nothing is written to. */
import { JobtailError } from '../../src/errors.ts';

/** The error that `promise` must reject with; any other one is thrown. */
export async function failureOf(promise: Promise<unknown>): Promise<JobtailError> {
  const thrown: unknown = await promise.then(
    (value) => new Error(`expected a failure, got ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (thrown instanceof JobtailError) return thrown;
  throw thrown;
}

const nothing = () => {};

/** A log that nothing is written to. */
export const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };
