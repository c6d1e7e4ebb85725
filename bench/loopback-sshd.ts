/** A real sshd on 127.0.0.1, and what a client with a key of its own needs for it. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { SSHD, Sshd } from '../test/support/sshd.ts';
import { NotHere } from './measurement.ts';

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
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', at('client')]);
  const sshd = await Sshd.start(1000);
  sshd.allow(fs.readFileSync(at('client.pub'), 'utf8').trim());
  const words = [
    'IdentitiesOnly=yes',
    'StrictHostKeyChecking=no',
    `UserKnownHostsFile=${at('known_hosts')}`,
    'LogLevel=ERROR',
  ];
  const options = words.flatMap((word) => ['-o', word]);
  return {
    port: sshd.port,
    pid: sshd.pid,
    username: os.userInfo().username,
    privateKeyFile: at('client'),
    publicKeyFile: at('client.pub'),
    ssh: ['ssh', '-F', 'none', '-i', at('client'), ...options, '-p', String(sshd.port)],
    stop: () => sshd.stop(),
  };
}
