import { describe, expect, it } from 'vitest';
import { changesOf } from '../../src/config/changes.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load, path } = configDirectory();

const usual = (tasks: readonly string[] | null) =>
  `{"tasks":${JSON.stringify(tasks)},"files":["stdout","stderr","log","progress"],"results":true,"settleAfterMs":null}`;

describe('the changes of a configuration', () => {
  it('are none if only the text differs', async () => {
    const before = await load(MINIMAL);
    const after = await load(`# a comment\n${MINIMAL}poll: {maxIntervalSeconds: 60.0}\n`);
    expect(changesOf(before, after).lines).toEqual([]);
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
    expect(changesOf(before, after).lines).toEqual([
      'mirror.directory /var/lib/agent/mirror -> /srv/mirror',
      'poll.maxIntervalSeconds 60 -> 30',
      'results.include ["**"] -> ["*.dat"]',
      'results.maxFileBytes null -> 1024',
      'metrics.listen null -> {"host":"127.0.0.1","port":9464}',
      'view null -> {"listen":{"host":"127.0.0.1","port":9470},"tokenFile":null,"publicUrl":"https://gateway.example.org/"}',
      'auth.username alice -> bob',
      `auth.passwordFile ${path('password')} -> ${path('other')}`,
      `watch job 1 ${usual(null)} -> nothing`,
      `watch job 2 ${usual(['7'])} -> {"tasks":["7","8"],"files":["log"],"results":false,"settleAfterMs":300000}`,
      `watch job 4 nothing -> ${usual(null)}`,
    ]);
  });

  it('show of a command only its program', async () => {
    const withCommand = (words: string) => load(MINIMAL.replace('passwordFile: password', `passwordCommand: ${words}`));
    const before = await withCommand('[pass, hunter2]');
    expect(changesOf(before, await withCommand('[pass, hunter3]')).lines).toEqual(['auth.passwordCommand changed']);
    expect(changesOf(before, await withCommand('[other, hunter2]')).lines).toEqual([
      'auth.passwordCommand [pass, ...] -> [other, ...]',
    ]);
    expect(changesOf(before, await load(MINIMAL)).lines).toEqual([
      'auth.passwordCommand [pass, ...] -> nothing',
      'auth.commandTimeoutSeconds 30 -> nothing',
      `auth.passwordFile nothing -> ${path('password')}`,
    ]);
  });

  it('name the time that a command has', async () => {
    const withTime = (seconds: number) =>
      load(MINIMAL.replace('passwordFile: password', `passwordCommand: [pass]\n  commandTimeoutSeconds: ${seconds}`));
    expect(changesOf(await withTime(30), await withTime(5)).lines).toEqual(['auth.commandTimeoutSeconds 30 -> 5']);
  });

  it('count the rules of notifications, whose addresses may be secrets', async () => {
    const rules = (url: string) => load(`${MINIMAL}notify: [{on: [failed], url: "${url}"}]\nstallAfterMinutes: 5\n`);
    const [none, before] = [await load(MINIMAL), await rules('https://example.org/a')];
    expect(changesOf(none, before).lines).toEqual(['stallAfterMinutes null -> 5', 'notify 0 rules -> 1 rule']);
    expect(changesOf(before, await rules('https://example.org/b')).lines).toEqual(['notify changed']);
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
    expect(changesOf(before, after).lines).toEqual(['fleet.maxJobs 2000 -> 5']);
    expect(changesOf(none, before).restart).toEqual(['fleet']);
    expect(changesOf(before, before).restart).toEqual([]);
  });
});
