/** Whose a file or directory is: by itself, by the directories and links that lead to it, and by name. */
import fs from 'node:fs';
import path from 'node:path';
import { JobtailError } from '../errors.ts';

/** The limit of Linux. */
const MAX_LINKS = 40;

export interface Step {
  readonly at: string;
  readonly stat: fs.Stats;
}

/** Each directory and link on the way to a file, and what is there; else the nearest directory above. */
export function stepsTo(file: string): Step[] {
  const steps: Step[] = [];
  let links = 0;
  const walk = (target: string) => {
    const parts = target.split('/').filter((part) => part !== '');
    for (let at = '/', index = 0; ; index++) {
      const stat = fs.lstatSync(at, { throwIfNoEntry: false });
      if (stat === undefined) return;
      steps.push({ at, stat });
      if (stat.isSymbolicLink()) {
        if (++links > MAX_LINKS) throw new JobtailError('local-io', `${file} leads through too many links`);
        return walk(path.resolve(path.dirname(at), fs.readlinkSync(at), ...parts.slice(index)));
      }
      const next = parts[index];
      if (next === undefined || !stat.isDirectory()) return;
      at = path.join(at, next);
    }
  };
  walk(path.resolve(file));
  return steps;
}

/** A group with the number of the user is private on many systems. In a sticky directory, others replace nothing. */
export function isWritableByOthers({ mode, uid, gid }: fs.Stats): boolean {
  const isOpen = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid);
  return isOpen && (mode & (fs.constants.S_IFMT | 0o1000)) !== (fs.constants.S_IFDIR | 0o1000);
}

export function isOfRoot(file: string): boolean {
  return stepsTo(file).every(({ stat }) => stat.uid === 0 && (stat.isSymbolicLink() || !isWritableByOthers(stat)));
}

/** The name of a user of this machine; of a directory service, whose servers may not respond, the number. */
export const userName = (uid: number | undefined): string =>
  uid === undefined
    ? 'of the agent'
    : (entriesOf('passwd').find(([, , number]) => number === String(uid))?.[0] ?? `${uid}`);

export const groupName = (gid: number): string =>
  entriesOf('group').find(([, , number]) => number === String(gid))?.[0] ?? `${gid}`;

/** Of a name of this machine, or of a number. @throws JobtailError config */
export function groupId(group: string): number {
  const [, , number = group] = entriesOf('group').find(([name]) => name === group) ?? [];
  if (/^\d+$/.test(number)) return Number(number);
  throw new JobtailError('config', `/etc/group has no group ${group}`, {
    hint: 'set api.controlGroup to a group of this machine, or to the number of one',
  });
}

/** The fields of each line of /etc/passwd or /etc/group. */
function entriesOf(name: 'passwd' | 'group'): string[][] {
  try {
    return fs
      .readFileSync(`/etc/${name}`, 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch {
    return [];
  }
}

/** Of the user that this process runs as. */
export const ownUserName = (): string => userName(process.geteuid?.());
