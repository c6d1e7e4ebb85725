/** A real sshd on 127.0.0.1 with keys and a configuration of its own, and what a client needs for it. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import { NotHere } from './measurement.ts';
import { startProcess } from './processes.ts';

const SSHD = '/usr/sbin/sshd';

export interface LoopbackSshd {
  readonly port: number;
  readonly pid: number;
  readonly username: string;
  /** Files of the client's key pair. */
  readonly privateKeyFile: string;
  readonly publicKeyFile: string;
  /** The words of an ssh client, up to the options; the host is 127.0.0.1. */
  readonly ssh: readonly string[];
  readonly stop: () => Promise<void>;
}

/** @throws NotHere if there is no sshd */
export async function startSshd(directory: string): Promise<LoopbackSshd> {
  if (!fs.existsSync(SSHD)) throw new NotHere('openssh-server is missing');
  const at = (name: string) => path.join(directory, name);
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const name of ['host', 'client']) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', at(name)]);
  }
  // Without it, root's sshd does not start.
  if (process.getuid?.() === 0) fs.mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const port = await freePort();
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host')}`,
    `AuthorizedKeysFile ${at('client.pub')}`,
    `PidFile ${at('pid')}`,
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin yes',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'MaxStartups 1000',
    'MaxSessions 1000',
  ];
  fs.writeFileSync(at('sshd_config'), `${settings.join('\n')}\n`);
  const sshd = startProcess(SSHD, ['-D', '-e', '-f', at('sshd_config')]);
  await sshd.until('it listened', () => answers(port));
  const known = [
    '-o',
    'StrictHostKeyChecking=no',
    '-o',
    `UserKnownHostsFile=${at('known_hosts')}`,
    '-o',
    'LogLevel=ERROR',
  ];
  return {
    port,
    pid: sshd.pid,
    username: os.userInfo().username,
    privateKeyFile: at('client'),
    publicKeyFile: at('client.pub'),
    ssh: ['ssh', '-F', 'none', '-i', at('client'), '-o', 'IdentitiesOnly=yes', ...known, '-p', String(port)],
    stop: () => sshd.stop(),
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
