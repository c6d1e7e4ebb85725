/** Names of users for messages. */
import { readFileSync } from 'node:fs';

/** The name of a user of this machine; of a directory service, whose servers may not respond, the number. */
export function userName(uid: number | undefined): string {
  if (uid === undefined) return 'of the agent';
  try {
    const entries = readFileSync('/etc/passwd', 'utf8').split('\n');
    const [name = ''] = entries.map((line) => line.split(':')).find(([, , number]) => number === String(uid)) ?? [];
    return name === '' ? String(uid) : name;
  } catch {
    return String(uid);
  }
}

/** Of the user that this process runs as. */
export const ownUserName = (): string => userName(process.geteuid?.());
