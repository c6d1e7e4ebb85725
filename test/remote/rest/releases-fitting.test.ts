/** The releases that fit what was found out of a server, against the table of the simulated cluster. */
import { describe, expect, it } from 'vitest';
import { RELEASE_NAMES, releaseOf } from '../../../simulator/rest/releases.ts';
import { formOfNames, releasesFitting, spansOf } from '../../../src/remote/rest/capabilities.ts';

const ALL = releasesFitting([]);
const LISTING = {
  first: ['POST FileTransfer/ListChangedFilesForJob'],
  second: ['GET FileTransfer/ListChangedFilesForJob'],
};
const KEY = { first: ['POST FileTransfer/GetFileTransferMethod'], second: ['POST FileTransfer/RequestFileTransfer'] };
const either = ({ first, second }: typeof KEY) => [...first, ...second];

describe('the releases that fit', () => {
  it('are all of them, as long as nothing was found', () => {
    expect(ALL).toEqual(RELEASE_NAMES.filter((name) => name !== '4.2.0'));
    expect(spansOf(ALL)).toBe('V2.0 to V6.5');
  });

  it.each(ALL)('have %s among them, by all that it does', (name) => {
    const release = releaseOf(name as (typeof RELEASE_NAMES)[number]);
    const { readAddresses: read, keyAddresses: key } = release;
    const form = release.names === 'slashes' ? 'without a leading slash' : 'with a leading slash';
    const paths = { specification: ['listed'], job: ['below the job'], 'job-unless-task': ['listed', 'below the job'] };
    for (const path of paths[release.asked]) {
      for (const listing of read === 'both' ? either(LISTING) : LISTING[read]) {
        for (const method of key === 'both' ? either(KEY) : KEY[key]) {
          expect(releasesFitting([listing, method, form, path])).toContain(name);
        }
      }
    }
    // What it does not do leaves it out.
    if (read !== 'both') expect(releasesFitting(LISTING[read === 'first' ? 'second' : 'first'])).not.toContain(name);
    if (key !== 'both') expect(releasesFitting(KEY[key === 'first' ? 'second' : 'first'])).not.toContain(name);
  });

  it('are told as spans, and may be none', () => {
    expect(spansOf(releasesFitting(KEY.first))).toBe('V2.0 to V3.1, V4.1');
    expect(releasesFitting(['without a leading slash', 'below the job'])).toEqual([]);
  });

  it.each([
    [['503///stdout.txt'], 'without a leading slash'],
    [['/503/stdout.txt'], 'with a leading slash'],
    [['/503/stdout.txt', '/503/results/a b.bin'], 'with a leading slash'],
    [['/scratch/503/stdout.txt'], undefined],
    [[], undefined],
  ])('go by the names of %j: %s', (names, form) => {
    expect(formOfNames(names)).toBe(form);
  });
});
