import { describe, expect, it } from 'vitest';
import type { StoredError } from '../../../src/store/rows.ts';
import { serviceErrorOf } from '../../../src/view/events/jobs.ts';

const failure = (since: number, more: Partial<StoredError> = {}): StoredError => ({
  code: 'unreachable',
  message: `failed at ${since}`,
  hint: null,
  since,
  retryAt: since + 100,
  ...more,
});
const job = (polledAt: number | null, error: StoredError | null = null, state: 'watched' | 'settled' = 'watched') => ({
  ...{ polledAt, error, state },
});

describe('the failure of the service', () => {
  it('is none while it answers a job', () => {
    expect(serviceErrorOf([])).toBeNull();
    expect(serviceErrorOf([job(5), job(null)])).toBeNull();
    expect(serviceErrorOf([job(50, failure(10)), job(20)])).toBeNull();
  });

  it('began with the first failure after its last answer, and ends with the next attempt of any job', () => {
    const jobs = [job(40, failure(30)), job(41, failure(25)), job(20), job(60, failure(31, { retryAt: 90 }))];
    expect(serviceErrorOf(jobs)).toMatchObject({ message: 'failed at 25', since: 25, retryAt: 90, isOfService: true });
  });

  it('is not that of one job which began before others were answered', () => {
    const chronic = job(99, failure(1));
    expect(serviceErrorOf([chronic, job(50)])).toBeNull();
    expect(serviceErrorOf([chronic, job(50), job(60, failure(55))])).toMatchObject({ since: 55 });
  });

  it('is nothing that the service answered', () => {
    expect(serviceErrorOf([job(10, failure(10, { code: 'not-found' }))])).toBeNull();
    // An answer, even a refusal, shows that it is up.
    expect(serviceErrorOf([job(10, failure(5)), job(20, failure(20, { code: 'fault' }))])).toBeNull();
  });

  it('counts no job that is no longer followed', () => {
    expect(serviceErrorOf([job(10, failure(5), 'settled')])).toBeNull();
    expect(serviceErrorOf([job(10, failure(5)), job(20, null, 'settled')])).toMatchObject({ since: 5 });
  });
});
