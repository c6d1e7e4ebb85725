import { describe, expect, it } from 'vitest';
import { changesOf } from '../../src/config/changes.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load } = configDirectory();

describe('the changed keys of a configuration', () => {
  it('are none if only the text differs', async () => {
    const before = await load(MINIMAL);
    const after = await load(`# a comment\n${MINIMAL}poll: {maxIntervalSeconds: 60.0}\n`);
    expect(changesOf(before, after)).toEqual({ keys: [], restart: [] });
  });

  it('are named by their sections, a watched job by its number, and no value is shown', async () => {
    const before = await load(`${MINIMAL}watch:\n  - {job: 1}\n  - {job: 2, tasks: [7]}\n  - {job: 3}\n`);
    const after =
      await load(`${MINIMAL.replace('username: alice', 'username: bob').replace('File: password', 'File: other')}
mirror: {directory: /srv/mirror}
poll: {maxIntervalSeconds: 30}
results: {include: ["*.dat"]}
watch: [{job: 2, tasks: [7, 8]}, {job: 3}, {job: 4}]
notify: [{on: [failed], url: "https://example.org/secret"}]
metrics: {listen: 127.0.0.1:9464}
view: {publicUrl: https://gateway.example.org/}
`);
    const ofSections = ['mirror.directory', 'poll.maxInterval', 'results.include', 'notify', 'metrics.listen', 'view'];
    const ofJobs = ['watch job 1', 'watch job 2', 'watch job 4'];
    expect(changesOf(before, after).keys).toEqual([...ofSections, 'auth.username', 'auth.passwordFile', ...ofJobs]);
  });

  it.each([
    ['its arguments', '[pass, a]', '[pass, b]'],
    ['its time', '[pass]', '[pass]\n  commandTimeoutSeconds: 5'],
  ])('include the command of a secret if %s differs', async (_, before, after) => {
    const withCommand = (words: string) => load(MINIMAL.replace('passwordFile: password', `passwordCommand: ${words}`));
    expect(changesOf(await withCommand(before), await withCommand(after)).keys).toEqual(['auth.passwordCommand']);
  });

  it('need a restart if a directory or any key of a fleet differs', async () => {
    const fleet = (keys: string) => load(`${MINIMAL}fleet: {urlFile: db, name: anna${keys}}\n`);
    const [none, one, other] = [await load(MINIMAL), await fleet(''), await fleet(', maxJobs: 5')];
    const moved = await load(`${MINIMAL}mirror: {directory: m}\nstate: {directory: s}\nlogging: {level: warn}\n`);
    expect(changesOf(none, moved).restart).toEqual(['mirror.directory', 'state.directory']);
    expect(changesOf(none, one).restart).toEqual(['fleet']);
    expect(changesOf(one, other).restart).toEqual(['fleet']);
  });
});
