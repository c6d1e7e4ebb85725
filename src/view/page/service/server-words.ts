/** What the agent detected of the server, and the calls that it makes, in the words of an operator. */
import type { ServiceState } from '../../contract/events.ts';

/** By the name of the operation. */
export const CALLS: Readonly<Record<string, string>> = {
  DownloadPartsOfJobFilesFromCluster: 'growth of live files',
  DownloadFileFromCluster: 'downloads',
  ListChangedFilesForJob: 'lists of files',
  GetCurrentInfoForJob: 'states of jobs',
  ListJobsForCurrentUser: 'lists of jobs',
  GetFileTransferMethod: 'transfer keys',
  EndFileTransfer: 'ended transfers',
};

type Words = readonly [word: string, value: string];

const directories = (shift: string) =>
  shift === '0'
    ? 'the id of the task'
    : `the id of the task ${shift.startsWith('-') ? '+' : '-'} ${shift.replace('-', '')}`;

/** By the name of the capability; others are for the program alone. */
const WORDS: Readonly<Record<string, (value: string) => Words>> = {
  'text-encoding': (value) => ['text', value === 'utf-8' ? 'decoded as UTF-8' : 'not decoded as UTF-8'],
  'rest-path': (value) => [
    'files',
    value === 'listed' ? 'requested by their listed names' : 'requested by their listed names below the id of the job',
  ],
  'task-shift': (value) => ['directories', `named by ${directories(value)}`],
};
const ADDRESS = /^rest-address-/;

/** Facts with their values. */
export function factsOf(learned: ServiceState['learned']): (readonly [word: string, values: readonly string[]])[] {
  const facts = learned.flatMap(({ name, value }) => {
    const words = WORDS[name]?.(value);
    return words === undefined ? [] : [[words[0], [words[1]]] as const];
  });
  const addresses = learned.flatMap(({ name, value }) => (ADDRESS.test(name) ? [value.replace(/^GET /, '')] : []));
  return addresses.length === 0 ? facts : [...facts, ['addresses', addresses]];
}
