/** A real sshd on 127.0.0.1 with host key, configuration and authorized_keys of its own; it is stopped by whoever starts it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { until } from '../support/e2e-until.ts';
import { freePort } from '../support/free-port.ts';

const SSHD = '/usr/sbin/sshd';

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
  static async start(): Promise<Sshd> {
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
      'MaxStartups 100',
    ];
    fs.writeFileSync(path.join(directory, 'config'), `${settings.join('\n')}\n`);
    const sshd = new Sshd(port, directory);
    await sshd.#listening();
    return sshd;
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

/** A forced command as sites have it: only a sending rsync, below one directory, or nothing. It knows no quotes. */
export function restrictedCommand(directory: string, root: string, allowsRsync = true): string {
  const file = path.join(directory, 'only.sh');
  const script = [
    '#!/bin/sh',
    'case "$SSH_ORIGINAL_COMMAND" in',
    '  *..*) echo "no way up" >&2; exit 1 ;;',
    ...(allowsRsync ? [`  "rsync --server --sender "*" . ${root}/"*) ;;`] : []),
    '  *) echo "not allowed here: $SSH_ORIGINAL_COMMAND" >&2; exit 1 ;;',
    'esac',
    'set -f',
    'exec $SSH_ORIGINAL_COMMAND',
  ];
  fs.writeFileSync(file, `${script.join('\n')}\n`, { mode: 0o755 });
  return file;
}

/** A line between the agent and a server that can be cut, or fall silent, after so many bytes. */
export class CuttableLine {
  readonly port: number;
  /** Bytes towards the agent that each connection lets through; the next connection takes the next one. */
  readonly cuts: number[] = [];
  /** A connection stays open, and says nothing any more, after about so many bytes towards the agent. */
  silentAfterBytes = Number.POSITIVE_INFINITY;
  connections = 0;

  private constructor(port: number) {
    this.port = port;
  }

  static async to(port: number): Promise<CuttableLine> {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const line = new CuttableLine((server.address() as net.AddressInfo).port);
    const sockets = new Set<net.Socket>();
    server.on('connection', (near) => {
      line.connections++;
      let left = line.cuts.shift() ?? Number.POSITIVE_INFINITY;
      let untilSilent = line.silentAfterBytes;
      const far = net.connect(port, '127.0.0.1');
      for (const socket of [near, far]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far);
      far.on('data', (bytes) => {
        left -= bytes.length;
        untilSilent -= bytes.length;
        if (left < 0) near.resetAndDestroy();
        else if (untilSilent < 0) far.pause();
        else if (!near.write(bytes)) {
          far.pause();
          near.once('drain', () => far.resume());
        }
      });
    });
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return line;
  }
}
