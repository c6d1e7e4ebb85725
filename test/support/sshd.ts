/** A real sshd on 127.0.0.1 with host key, configuration and authorized_keys of its own; it is stopped by whoever starts it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../../simulator/free-port.ts';
import { until } from './e2e-until.ts';

export const SSHD = '/usr/sbin/sshd';

export class Sshd {
  readonly port: number;
  readonly directory: string;
  /** Of the host, as in authorized_keys. */
  readonly publicKey: string;
  #process: ChildProcess;
  #said = '';

  private constructor(port: number, directory: string) {
    this.port = port;
    this.directory = directory;
    this.publicKey = fs.readFileSync(path.join(directory, 'host.pub'), 'utf8').trim();
    this.#process = this.#spawn();
  }

  /** Whoever starts it stops it. */
  static async start(maxStartups = 100): Promise<Sshd> {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-sshd-'));
    const port = await freePort();
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path.join(directory, 'host')]);
    // Without it, root's sshd does not start.
    if (process.getuid?.() === 0) fs.mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
    fs.writeFileSync(path.join(directory, 'authorized_keys'), '');
    const settings = [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${path.join(directory, 'host')}`,
      `AuthorizedKeysFile ${path.join(directory, 'authorized_keys')}`,
      `PidFile ${path.join(directory, 'pid')}`,
      'StrictModes no',
      'UsePAM no',
      'PermitRootLogin yes',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      `MaxStartups ${maxStartups}`,
    ];
    fs.writeFileSync(path.join(directory, 'config'), `${settings.join('\n')}\n`);
    const sshd = new Sshd(port, directory);
    await sshd.#listening();
    return sshd;
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Accepts a key; `command` is forced upon it. */
  allow(publicKey: string, command?: string): void {
    const options = command === undefined ? '' : `restrict,command="${command.replaceAll('"', '\\"')}" `;
    fs.appendFileSync(path.join(this.directory, 'authorized_keys'), `${options}${publicKey}\n`);
  }

  refuse(publicKey: string): void {
    const file = path.join(this.directory, 'authorized_keys');
    const lines = fs.readFileSync(file, 'utf8').split('\n');
    fs.writeFileSync(file, lines.filter((line) => !line.includes(publicKey)).join('\n'));
  }

  /** Shows another host key from now on. */
  async changeHostKey(): Promise<void> {
    await this.#end();
    for (const name of ['host', 'host.pub']) fs.rmSync(path.join(this.directory, name));
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path.join(this.directory, 'host')]);
    this.#process = this.#spawn();
    await this.#listening();
  }

  /** Ends it, and removes what it needed. */
  async stop(): Promise<void> {
    await this.#end();
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  async #end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.kill('SIGTERM');
    await ended;
  }

  #spawn(): ChildProcess {
    const child = spawn(SSHD, ['-D', '-e', '-f', path.join(this.directory, 'config')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr?.on('data', (bytes: Buffer) => {
      this.#said += bytes.toString();
    });
    return child;
  }

  async #listening(): Promise<void> {
    await until('sshd to listen', () => {
      if (this.#process.exitCode !== null) throw new Error(`sshd ended: ${this.#said}`);
      return new Promise<boolean>((resolve) => {
        const socket = net.connect(this.port, '127.0.0.1', () => resolve(true));
        socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
      });
    });
  }
}
