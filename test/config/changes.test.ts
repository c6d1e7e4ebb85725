import { describe, expect, it } from 'vitest';
import { changesOf } from '../../src/config/config.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load } = configDirectory();

describe('the changes of a configuration', () => {
  it('are none if only the text differs', async () => {
    const before = await load(MINIMAL);
    const after = await load(`# a comment\n${MINIMAL}poll: {maxIntervalSeconds: 60.0}\n`);
    expect(changesOf(before, after)).toEqual({ sections: [], restart: [] });
  });

  it('are reported by the section of the file, without a value', async () => {
    const before = await load(`${MINIMAL}watch: [{job: 1}]\n`);
    const after = await load(`${MINIMAL.replace('passwordFile: password', 'passwordCommand: [pass, hunter2]')}
poll: {maxIntervalSeconds: 30}
watch: [{job: 1, tasks: [7]}]
stallAfterMinutes: 5
`);
    expect(changesOf(before, after)).toEqual({ sections: ['auth', 'poll', 'watch', 'stallAfterMinutes'], restart: [] });
  });

  it('need a restart if a directory is another one', async () => {
    const before = await load(MINIMAL);
    const after = await load(`${MINIMAL}mirror: {directory: m}\nstate: {directory: s}\nlogging: {level: warn}\n`);
    expect(changesOf(before, after).restart).toEqual(['mirror.directory', 'state.directory']);
  });

  it('need a restart if the service is another one', async () => {
    const soap = MINIMAL.replace('/FileTransferWs', '/other/FileTransferWs');
    const rest = MINIMAL.replace(/protocol: soap[\s\S]* {2}baseUrl/, 'protocol: rest\n  baseUrl');
    for (const text of [soap, rest, rest.replace('auth:', '  path: /other\nauth:')])
      expect(changesOf(await load(MINIMAL), await load(text)).restart).toEqual(['the address of the service']);
    const faster = MINIMAL.replace('auth:', '  concurrency: 9\nauth:');
    expect(changesOf(await load(MINIMAL), await load(faster)).restart).toEqual([]);
  });

  it('need a restart in a fleet, whichever key of it is another one', async () => {
    const fleet = (keys: string) => load(`${MINIMAL}fleet: {urlFile: db, name: anna${keys}}\n`);
    const [none, before, after] = [await load(MINIMAL), await fleet(''), await fleet(', maxJobs: 5')];
    expect(changesOf(before, after).restart).toEqual(['fleet']);
    expect(changesOf(none, before).restart).toEqual(['fleet']);
    expect(changesOf(before, before).restart).toEqual([]);
  });
});
