/** The errors of a transfer, by messages of ssh. No hint names a setting that may be the one in force. */
import { JobtailError, KeyRefused } from '../errors.ts';

const LOST = /^ssh: |^kex_exchange_identification|Connection (?:timed out|refused|closed by|reset by)/m;

/** The service, or a host that it names, sent something unsafe or unknown. */
export function unacceptable(message: string): JobtailError {
  return new JobtailError('unexpected-answer', message, {
    hint: 'report it to the operators of the service; results come by the service itself',
  });
}

/** The failure of the connection, from the output of ssh; undefined if the connection worked. */
export function connectionFailure(stderr: string, host: string): JobtailError | undefined {
  const is = (pattern: RegExp) => pattern.test(stderr);
  if (is(/IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known/)) {
    return new JobtailError('unexpected-answer', `the host key of ${host} is not the one that is known`, {
      hint: 'ask the operators of the host for its key; then correct it in the known_hosts file, or in results.ssh.pinnedKeys',
    });
  }
  if (is(/^\S*: ?Permission denied \(|Permission denied \(publickey|Too many authentication failures/m)) {
    return new KeyRefused(host);
  }
  if (is(/invalid format|error in libcrypto|incorrect passphrase/)) {
    return unacceptable('OpenSSH cannot read the private key of the service');
  }
  return is(LOST) ? unreachable(stderr, host) : undefined;
}

export function unreachable(stderr: string, host: string): JobtailError {
  return new JobtailError('unreachable', `${host} cannot be reached over SSH: ${causeOf(stderr)}`, {
    hint: 'check the network and the firewall between this machine and the cluster',
  });
}

export function brokeOff(stderr: string, host: string): JobtailError {
  return new JobtailError('interrupted', `the transfer from ${host} broke off: ${causeOf(stderr)}`, {
    hint: 'what arrived is kept, and the next attempt continues from there',
  });
}

export function refused(stderr: string, host: string): JobtailError {
  return new JobtailError('unexpected-answer', `rsync cannot read the files on ${host}: ${causeOf(stderr)}`, {
    hint: 'the key must permit rsync, and rsync must be installed there',
  });
}

/** The line that names the cause: of ssh, else the last one that is not the sum of rsync, `rsync error: ...`. */
export function causeOf(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').trim());
  const last = (pattern: RegExp) => lines.findLast((line) => pattern.test(line));
  return (last(LOST) ?? last(/^(?!rsync error:)./) ?? last(/./))?.slice(0, 200) ?? 'ssh printed no reason';
}
