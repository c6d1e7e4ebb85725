/** Where a view listens: an address of this machine, or the path of a Unix socket that only its owner may open. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { inTheWay } from '../system/directories.ts';
import type { ViewSettings } from './settings.ts';

type Listen = ViewSettings['listen'];

/** Resolves with what closes it besides the server. @throws what `listen` fails with; JobtailError */
export async function listenAt(server: net.Server, listen: Listen): Promise<() => void> {
  if ('path' in listen) return listenAtPath(server, listen.path);
  try {
    server.listen(listen.port, listen.host);
    await once(server, 'listening');
    return () => {};
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const user = code === 'EADDRINUSE' ? userAt(listen) : undefined;
    if (user !== undefined) (error as Error).message = `${message}: a process of user ${user} listens there`;
    throw error;
  }
}

/** Made in a private directory, so that it is never open to others, and then moved to its name. */
async function listenAtPath(server: net.Server, file: string): Promise<() => void> {
  await removeStale(file);
  const directory = fs.mkdtempSync(path.join(path.dirname(file), '.v-'));
  const made = path.join(directory, 's');
  try {
    server.listen(made);
    await once(server, 'listening');
    fs.chmodSync(made, 0o600);
    fs.renameSync(made, file);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
  const { ino } = fs.lstatSync(file);
  return () => {
    if (fs.lstatSync(file, { throwIfNoEntry: false })?.ino === ino) fs.rmSync(file, { force: true });
  };
}

/** Removes a socket that a killed process left. @throws EADDRINUSE if a process listens there; JobtailError */
async function removeStale(file: string): Promise<void> {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw inTheWay(file, 'socket');
  const connection = net.connect(file);
  try {
    await once(connection, 'connect');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED') fs.rmSync(file, { force: true });
    else if (code !== 'ENOENT') throw error;
    return;
  } finally {
    connection.destroy();
  }
  const message = `listen EADDRINUSE: a process of user ${stat.uid} listens at ${file}`;
  throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
}

/** The user whose process listens there, if the system shows one: of a port by /proc/net/tcp. */
export function userAt(listen: Listen): number | undefined {
  if ('path' in listen) return fs.lstatSync(listen.path, { throwIfNoEntry: false })?.uid;
  const users = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listenersIn(table, listen.port)));
  const [user] = users;
  return users.size === 1 ? user : undefined;
}

const LISTENING = '0A';

function listenersIn(table: string, port: number): number[] {
  let text: string;
  try {
    text = fs.readFileSync(table, 'latin1');
  } catch {
    return [];
  }
  return text.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , user = ''] = line.trim().split(/ +/);
    const isIt = state === LISTENING && Number.parseInt(local.split(':')[1] ?? '', 16) === port;
    return isIt ? [Number(user)] : [];
  });
}
