/** Where a server listens: at a port, or at a Unix socket of its owner alone, or also of a group. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { userName } from './owners.ts';
import { inTheWay } from './regular-files.ts';

export type Place =
  | { readonly host: string; readonly port: number }
  /** `group`: its id, or `own` for the one of this process. Without one, the owner alone may connect. */
  | { readonly path: string; readonly group?: number | 'own' | undefined };

/** Resolves with what closes it besides the server. @throws what `listen` fails with; JobtailError */
export async function listenAt(server: net.Server, listen: Place): Promise<() => void> {
  if ('path' in listen) return listenAtPath(server, listen.path, listen.group);
  server.listen(listen.port, listen.host);
  await once(server, 'listening');
  return () => {};
}

/** Made in a private directory, so that it is never open to others, and then moved to its name. */
async function listenAtPath(server: net.Server, file: string, group?: number | 'own'): Promise<() => void> {
  await removeStale(file);
  const directory = fs.mkdtempSync(path.join(path.dirname(file), '.v-'));
  const made = path.join(directory, 's');
  try {
    server.listen(made);
    await once(server, 'listening');
    const { uid, gid } = fs.statSync(made);
    // The unit refuses this call.
    if (typeof group === 'number' && gid !== group) fs.chownSync(made, uid, group);
    fs.chmodSync(made, group === undefined ? 0o600 : 0o660);
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
  const message = `listen EADDRINUSE: a process of user ${userName(stat.uid)} listens at ${file}`;
  throw Object.assign(new Error(message), { code: 'EADDRINUSE' });
}
