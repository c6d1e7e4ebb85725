import { describe, expect, it } from 'vitest';
import { changesOf } from '../../src/config/changes.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load } = configDirectory();

describe('the changes of a configuration', () => {
  it('are none if only the text differs', async () => {
    const before = await load(MINIMAL);
    const after = await load(`# a comment\n${MINIMAL}poll: {maxIntervalSeconds: 60.0}\n`);
    expect(changesOf(before, after).keys).toEqual([]);
    expect(changesOf(before, after).restart).toEqual([]);
  });

  it('are reported in the words of the file', async () => {
    const before = await load(`${MINIMAL}watch:\n  - {job: 1}\n  - {job: 2, tasks: [7]}\n  - {job: 3}\n`);
    const after =
      await load(`${MINIMAL.replace('username: alice', 'username: bob').replace('File: password', 'File: other')}
mirror: {directory: /srv/mirror}
poll: {maxIntervalSeconds: 30}
results: {include: ["*.dat"], maxFileBytes: 1 KiB}
watch:
  - {job: 2, tasks: [7, 8], files: [log], results: false, settleAfterMinutes: 5}
  - {job: 3}
  - {job: 4}
metrics: {listen: 127.0.0.1:9464}
view: {publicUrl: https://gateway.example.org/}
`);
    expect(changesOf(before, after).keys).toEqual([
      'mirror.directory',
      'poll.maxIntervalSeconds',
      'results.include',
      'results.maxFileBytes',
      'metrics.listen',
      'view',
      'auth.username',
      'auth.passwordFile',
      'watch job 1',
      'watch job 2',
      'watch job 4',
    ]);
  });

  it('name the source of the secret, and no word of it', async () => {
    const withCommand = (words: string) => load(MINIMAL.replace('passwordFile: password', `passwordCommand: ${words}`));
    const before = await withCommand('[pass, hunter2]');
    expect(changesOf(before, await withCommand('[pass, hunter3]')).keys).toEqual(['auth.passwordCommand']);
    expect(changesOf(before, await load(MINIMAL)).keys).toEqual(['auth.passwordCommand', 'auth.passwordFile']);
  });

  it('have the units of the file', async () => {
    const rules = (url: string) => load(`${MINIMAL}notify: [{on: [failed], url: "${url}"}]\nstallAfterMinutes: 5\n`);
    const [none, before] = [await load(MINIMAL), await rules('https://example.org/a')];
    expect(changesOf(none, before).keys).toEqual(['notify', 'stallAfterMinutes']);
    expect(changesOf(before, await rules('https://example.org/b')).keys).toEqual(['notify']);
  });

  it('need a restart if a directory is another one', async () => {
    const before = await load(MINIMAL);
    const after = await load(`${MINIMAL}mirror: {directory: m}\nstate: {directory: s}\nlogging: {level: warn}\n`);
    expect(changesOf(before, after).restart).toEqual(['mirror.directory', 'state.directory']);
  });

  it('need a restart in a fleet, whichever key of it is another one', async () => {
    const fleet = (keys: string) => load(`${MINIMAL}fleet: {urlFile: db, name: anna${keys}}\n`);
    const [none, before, after] = [await load(MINIMAL), await fleet(''), await fleet(', maxJobs: 5')];
    expect(changesOf(before, after).restart).toEqual(['fleet']);
    expect(changesOf(before, after).keys).toEqual(['fleet.maxJobs']);
    expect(changesOf(none, before).restart).toEqual(['fleet']);
    expect(changesOf(before, before).restart).toEqual([]);
  });
});
