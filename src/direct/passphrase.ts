/**
 * A private key that is locked with a passphrase (docs/rest.md 3.7). OpenSSH cannot ask for it during a transfer, so
 * the passphrase is removed when the key is written.
 */
import type { JobtailError } from '../errors.ts';
import { runProgram } from '../system/program.ts';
import { unacceptable } from './failures.ts';

const ANSWER_MS = 30_000;
/** What ssh-keygen asks, word for word. */
const QUESTION = 'Enter old passphrase: ';

/** Unlocks the key in the file. The passphrase stands on no command line. @throws JobtailError unexpected-answer */
export async function unlockKey(keyFile: string, passphrase: string, signal: AbortSignal): Promise<void> {
  if (/[\0\r\n]/.test(passphrase)) throw refused();
  const { PATH } = process.env;
  const { code } = await runProgram({
    command: 'ssh-keygen',
    args: ['-q', '-p', '-N', '', '-f', keyFile],
    // The program that answers a question prints what the environment has under the name of the question.
    env: { PATH, SSH_ASKPASS: 'printenv', SSH_ASKPASS_REQUIRE: 'force', DISPLAY: 'none', [QUESTION]: passphrase },
    limit: { totalMs: ANSWER_MS },
    signal,
  });
  if (code !== 0) throw refused();
}

const refused = (): JobtailError => unacceptable('the passphrase of the service does not unlock its private key');
