/** What rsync prints as a list of files. */
import { expect, it } from 'vitest';
import { readListing } from '../../src/direct/rsync-listing.ts';

it('the list of rsync is read by kind, size and name, whatever the name is', () => {
  const text = [
    'drwxr-xr-x          4,096 2026/11/26 10:00:00 .',
    '-rw-r--r--      1,234,567 2026/11/26 10:00:00 out/a name \\#012of two lines',
    'lrwxrwxrwx             11 2026/11/26 10:00:00 latest -> out',
    'prw-r--r--              0 2026/11/26 10:00:00 pipe',
    '',
  ].join('\n');
  expect(readListing(text)).toEqual({
    listed: [
      { kind: 'd', bytes: 4_096, name: '.' },
      { kind: '-', bytes: 1_234_567, name: 'out/a name \nof two lines' },
      { kind: 'l', bytes: 11, name: 'latest -> out' },
      { kind: 'p', bytes: 0, name: 'pipe' },
    ],
    unreadLines: 0,
  });
});

it('a line that is no entry of a list is counted, so that no list counts as complete without it', () => {
  const text =
    '-rw-r--r-- 5 2026/11/26 10:00:00 one\nWelcome to the cluster\n-rw-r--r-- many 2026/11/26 10:00:00 two\n';
  expect(readListing(text)).toEqual({ listed: [{ kind: '-', bytes: 5, name: 'one' }], unreadLines: 2 });
});
