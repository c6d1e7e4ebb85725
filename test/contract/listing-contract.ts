/** The contract of ListChangedFilesForJob. */
import { expect, test } from 'vitest';
import { type Serve, signal } from './contract-place.ts';
import { type Dialect, JOB_ENDS } from './service.ts';
import { HOSTILE_NAMES, IMPOSSIBLE_NAMES } from './texts.ts';

const OPERATION = 'ListChangedFilesForJob';
const EVERY_NAME = [...HOSTILE_NAMES, ...IMPOSSIBLE_NAMES];
/** Names that are those of no file of a task: the releases list these each in its own way (docs/dev/rest.md 3.4). */
const inNoDirectory = (name: string) => name.replace('701', '702');

export function listingContract(serve: Serve, dialect: Dialect): void {
  const { protocol, longIds } = dialect;
  const NAMES = protocol === 'soap' ? EVERY_NAME : EVERY_NAME.map(inNoDirectory);
  const files = new Map(NAMES.map((name) => [name, Buffer.from('x')]));

  test.each(longIds ? JOB_ENDS : ['501'])('gives the names of job %s as they are', async (jobId) => {
    // Entries without a name are left out.
    const { remote, understood, ...place } = await serve({ jobId, files, habits: { nilEntries: jobId !== '1' } });
    const names = await remote.listChangedFiles(place.jobId, signal);
    expect(names.toSorted()).toEqual(NAMES.toSorted());
    understood(OPERATION);
  });

  test.each([
    ['empty', false, false],
    ['absent', true, false],
    ['nil', true, true],
  ])('is empty if the list is %s', async (_, held, nullMembers) => {
    const { remote, jobId } = await serve({ jobId: '501', held, habits: { nullMembers } });
    expect(await remote.listChangedFiles(jobId, signal)).toEqual([]);
  });
}
