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
  const { protocol, tokens, longIds } = dialect;
  const NAMES = protocol === 'soap' ? EVERY_NAME : EVERY_NAME.map(inNoDirectory);
  const files = new Map(NAMES.map((name) => [name, Buffer.from('x')]));

  test.each(longIds ? JOB_ENDS : ['501'])('gives the names of job %s as they are', async (jobId) => {
    const { remote, understood, ...place } = await serve({ jobId, files });
    const names = await remote.listChangedFiles(place.jobId, signal);
    expect(names.toSorted()).toEqual(NAMES.toSorted());
    understood(OPERATION);
  });

  if (tokens)
    test('with a token instead of a session code', async () => {
      const { remote, jobId, understood } = await serve({ jobId: '501', files }, { grant: 'bearer' });
      expect((await remote.listChangedFiles(jobId, signal)).length).toBe(NAMES.length);
      understood(OPERATION);
    });

  test('leaves nil entries out', async () => {
    const { remote, jobId } = await serve({ jobId: '501', files, habits: { nilEntries: true } });
    expect((await remote.listChangedFiles(jobId, signal)).toSorted()).toEqual(NAMES.toSorted());
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
