import { expect, test } from 'vitest';
import { brokeOff, causeOf, connectionFailure, refused } from '../../src/direct/failures.ts';

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

const [UNEXPECTED, UNREACHABLE] = ['unexpected-answer', 'unreachable'] as const;

test.each([
  [
    'the host key of h is not the one that is known',
    UNEXPECTED,
    'pinnedKeys',
    'REMOTE HOST IDENTIFICATION HAS CHANGED!',
  ],
  ['the host key of h is not the one that is known', UNEXPECTED, 'pinnedKeys', 'Host key verification failed.'],
  ['the host key of h is not the one that is known', UNEXPECTED, 'pinnedKeys', 'No ED25519 host key is known'],
  ['h refused the temporary key', UNEXPECTED, 'its keys are refused', 'first\nu@h: Permission denied (publickey).'],
  ['h refused the temporary key', UNEXPECTED, 'its keys are refused', 'or Permission denied (publickey'],
  ['h refused the temporary key', UNEXPECTED, 'its keys are refused', 'Too many authentication failures'],
  ['OpenSSH cannot read the private key of the service', UNEXPECTED, 'report it', 'Load key: invalid format'],
  ['OpenSSH cannot read the private key of the service', UNEXPECTED, 'report it', 'error in libcrypto'],
  ['OpenSSH cannot read the private key of the service', UNEXPECTED, 'report it', 'incorrect passphrase'],
  ['h cannot be reached over SSH: ', UNREACHABLE, 'the firewall between', 'ssh: no route'],
  ['h cannot be reached over SSH: ', UNREACHABLE, 'the firewall between', 'kex_exchange_identification: reset'],
  ['h cannot be reached over SSH: ', UNREACHABLE, 'the firewall between', 'Connection closed by h'],
  ['h cannot be reached over SSH: ', UNREACHABLE, 'the firewall between', 'Connection reset by h'],
  ['h cannot be reached over SSH: ', UNREACHABLE, 'the firewall between', 'Connection timed out'],
])('the words of ssh have their error: %s, %s, %s: %s', (message, code, hint, text) => {
  const whole = message.endsWith(': ') ? message + text : message;
  const error = { code, message: whole, hint: expect.stringContaining(hint) };
  expect(connectionFailure(`${text}\n${CLOSED}`, 'h')).toMatchObject(error);
});

test('what is no failure of the connection is one of rsync', () => {
  expect(connectionFailure('rsync: change_dir "/a/Permission denied (13)" failed\n', 'h')).toBeUndefined();
  expect(refused('', 'h').message).toBe('rsync cannot read the files on h: ssh printed no reason');
  expect(causeOf(`\u001b[1m${'x'.repeat(300)}`)).toBe(`[1m${'x'.repeat(197)}`);
});
