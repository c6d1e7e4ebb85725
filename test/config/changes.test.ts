import { expect, it } from 'vitest';
import { changesOf } from '../../src/config/config.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load } = configDirectory();

const ADDRESS = ['the address of the service'];
const OTHER = MINIMAL.replace('/FileTransferWs', '/other/FileTransferWs');
const REST = MINIMAL.replace(/protocol: soap[\s\S]* {2}baseUrl/, 'protocol: rest\n  baseUrl');
const PROGRAM = MINIMAL.replace('passwordFile: password', 'passwordCommand: [pass, hunter2]');
const withService = (text: string, line: string) => text.replace('auth:', `  ${line}\nauth:`);
const FLEET = `${MINIMAL}fleet: {urlFile: db, name: anna}\n`;

it.each<[string, before: string, after: string, sections: string[], restart: string[]]>([
  ['none', MINIMAL, `# a comment\n${MINIMAL}poll: {maxIntervalSeconds: 60.0}\n`, [], []],
  [
    'its sections, without a value',
    `${MINIMAL}watch: [{job: 1}]\n`,
    `${PROGRAM}poll: {maxIntervalSeconds: 30}\nwatch: [{job: 1, tasks: [7]}]\nstallAfterMinutes: 5\n`,
    ['auth', 'poll', 'watch', 'stallAfterMinutes'],
    [],
  ],
  [
    'another directory',
    MINIMAL,
    `${MINIMAL}mirror: {directory: m}\nstate: {directory: s}\nlogging: {level: warn}\n`,
    ['mirror', 'state', 'logging', 'api'],
    ['mirror.directory', 'state.directory'],
  ],
  ['another service', MINIMAL, OTHER, ['service'], ADDRESS],
  ['another protocol', MINIMAL, REST, ['service', 'auth'], ADDRESS],
  ['another path', MINIMAL, withService(REST, 'path: /other'), ['service', 'auth'], ADDRESS],
  ['more calls', MINIMAL, withService(MINIMAL, 'concurrency: 9'), ['service'], []],
  ['a fleet', MINIMAL, FLEET, ['fleet'], ['fleet']],
  ['a key of a fleet', FLEET, FLEET.replace('anna', 'anna, maxJobs: 5'), ['fleet'], ['fleet']],
  ['no other fleet', FLEET, FLEET, [], []],
])('the changes of a configuration name %s', async (_, before, after, sections, restart) => {
  const found = changesOf(await load(before), await load(after));
  expect([found.sections.sort(), found.restart]).toEqual([sections.sort(), restart]);
});
