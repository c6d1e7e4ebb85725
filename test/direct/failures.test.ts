import { expect, test } from 'vitest';
import { brokeOff, connectionFailure } from '../../src/direct/failures.ts';

const CLOSED = `rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]
rsync error: unexplained error (code 255) at io.c(232) [Receiver=3.5.0]
`;

test('an unreachable transfer host is reported with the words of ssh, not with those of rsync after it', () => {
  const stderr = `Welcome to the cluster\nssh: connect to host 127.0.0.1 port 22: Connection refused\r\n${CLOSED}`;
  expect(connectionFailure(stderr, '127.0.0.1')?.message).toBe(
    '127.0.0.1 cannot be reached over SSH: ssh: connect to host 127.0.0.1 port 22: Connection refused',
  );
});

test('a transfer that breaks off is reported with the cause that rsync names, not with its exit code', () => {
  const named = 'rsync: [sender] read errors mapping "/job/result": Stale file handle (116)';
  const stderr = `${named}\nrsync error: some files could not be transferred (code 23) at main.c(1684)\n`;
  expect(brokeOff(stderr, 'host').message).toBe(`the transfer from host broke off: ${named}`);
  expect(brokeOff(`rsync error: timeout (code 30)\n`, 'host').message).toMatch('rsync error: timeout');
});
