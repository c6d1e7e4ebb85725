/** A place for direct transfers: a directory of a cluster, a request, what came of it, and the methods that a service lends. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { createKeyPair, type KeyFormat } from '../../simulator/cluster/key-pair.ts';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import type {
  DirectArrival,
  DirectFile,
  DirectRequest,
  DirectTransfer,
  Irregular,
} from '../../src/agent/ports/transfer.ts';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { type SshTransferOptions, sshTransfer } from '../../src/direct/ssh-transfer.ts';
import type { Sshd } from '../support/sshd.ts';
import { diskDirectory, temporaryDirectory } from '../support/temp-directory.ts';

export interface NamedFile extends DirectFile {
  readonly name: string;
}

/** A share with the job's directory. */
export const SHARED: TransferMethod = {
  ...{ serverHostname: null, sharedBasepath: '/scratch/jobs/501', protocol: 'NetworkShare', credentials: null },
};

export const fileOf = (name: string): NamedFile => ({ name, parts: name.split('/') });

export interface LendOptions {
  /** Where the host is said to be, if not where sshd is. */
  readonly host?: string;
  readonly allow?: boolean;
  readonly command?: string;
  readonly format?: KeyFormat;
}

/** Where a script is in the place of the program ssh. */
const NO_SSHD = { host: 'cluster.example', allow: () => {} };

export class TransferPlace {
  readonly directory = fs.realpathSync(temporaryDirectory(diskDirectory()));
  /** The job's directory on the cluster. */
  readonly cluster = path.join(this.directory, 'cluster', 'jobs', '501');
  readonly jobDirectory = path.join(this.directory, 'mirror', '501');
  readonly results = path.join(this.jobDirectory, 'results');
  readonly arrival = path.join(this.jobDirectory, '.direct');
  readonly came = new Map<string, Buffer>();
  readonly tooLarge: string[] = [];
  readonly irregular = new Map<string, Irregular>();
  readonly progress: number[] = [];
  /** How often it was reported that files were seen. */
  reached = 0;
  /** How many files were handed over together, each time. */
  readonly batches: number[] = [];

  readonly runtime = path.join(this.directory, "the agent's");
  readonly knownHosts = path.join(this.directory, 'known_hosts');

  constructor() {
    for (const directory of [this.cluster, this.results]) fs.mkdirSync(directory, { recursive: true });
    fs.mkdirSync(this.runtime, { mode: 0o700 });
  }

  /** Writes a file of the job on the cluster. */
  put(name: string, content: string | Buffer): void {
    const file = path.join(this.cluster, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  }

  /** Fetches files; what comes is taken over as the agent takes it. */
  async fetch(
    transfer: DirectTransfer,
    method: TransferMethod,
    names: readonly string[],
    more: Partial<DirectRequest<NamedFile>> = {},
  ): Promise<void> {
    await transfer.fetch<NamedFile>({
      method,
      files: names.map(fileOf),
      directory: this.arrival,
      presentDirectory: this.results,
      largestPresentBytes: Math.max(0, ...names.map((name) => this.#presentBytes(name))),
      maxFileBytes: null,
      bytesPerSecond: null,
      onFiles: async (arrivals) => {
        this.batches.push(arrivals.length);
        for (const arrival of arrivals) this.#take(arrival);
      },
      onTooLarge: (file) => this.tooLarge.push(file.name),
      onIrregular: ({ name }, kind) => this.irregular.set(name, kind),
      onBytes: (bytes) => this.progress.push(bytes),
      onReached: () => {
        this.reached += 1;
      },
      signal: new AbortController().signal,
      ...more,
    });
  }

  #presentBytes(name: string): number {
    return fs.lstatSync(path.join(this.results, name), { throwIfNoEntry: false })?.size ?? 0;
  }

  #take({ file, path: arrived, digest }: DirectArrival<NamedFile>): void {
    if (!fs.lstatSync(arrived).isFile()) throw new Error(`${arrived} is no regular file`);
    const content = fs.readFileSync(arrived);
    const sha256 = createHash('sha256').update(content).digest('hex');
    if (digest !== undefined) expect(digest, file.name).toEqual({ bytes: content.length, sha256 });
    this.came.set(file.name, content);
    const target = path.join(this.results, ...file.parts);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.renameSync(arrived, target);
  }

  /** Everything below a directory that is no directory. */
  files(directory: string): string[] {
    if (!fs.existsSync(directory)) return [];
    return fs
      .readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
      .sort();
  }

  transfer(options: Partial<SshTransferOptions> = {}): DirectTransfer {
    return sshTransfer({
      hostKeys: 'accept-new',
      knownHostsFile: this.knownHosts,
      pinnedKeys: [],
      directory: new PrivateDirectory({
        stateDirectory: this.directory,
        environment: { RUNTIME_DIRECTORY: this.runtime },
      }),
      ...options,
    });
  }

  async lend(sshd: Pick<Sshd, 'host' | 'allow'> = NO_SSHD, options: LendOptions = {}): Promise<TransferMethod> {
    const { privateKey, publicKey } = await createKeyPair(options.format ?? 'ed25519-openssh');
    if (options.allow !== false) sshd.allow(publicKey, options.command);
    return {
      serverHostname: options.host ?? sshd.host,
      sharedBasepath: `${this.cluster}/`,
      protocol: 'SftpScp',
      credentials: { username: process.env['USER'] ?? 'root', privateKey, publicKey },
    };
  }

  /** Puts a script in the place of the program ssh, for the time of the test: a host that does as it likes. */
  hostIs(...lines: readonly string[]): void {
    const host = this.script('host', ...lines);
    const bin = path.join(this.directory, 'bin');
    fs.mkdirSync(bin, { recursive: true });
    this.script(
      'bin/ssh',
      'case "$*" in "-Q cipher") exit 0;; esac',
      `export SSH_ORIGINAL_COMMAND="$(echo "$*" | sed 's/^.* transfer //')"`,
      `exec ${host}`,
    );
    vi.stubEnv('PATH', `${bin}:${process.env['PATH'] ?? ''}`);
    onTestFinished(() => void vi.unstubAllEnvs());
  }

  /** A host whose rsync reads other names than it was asked for, of the same length. */
  hostSwaps(from: string, to: string): void {
    const swapped = `Buffer.from(bytes.toString('latin1').replaceAll('${from}', '${to}'), 'latin1')`;
    this.#hostBehind(`
      process.stdin.on('data', (bytes) => server.stdin.write(${swapped})).on('end', () => server.stdin.end());
      server.stdout.pipe(process.stdout);`);
  }

  /** A host that ends in the middle of what it sends, or falls silent, after so many bytes, as often as that. */
  hostCuts(bytes: number, times = Number.POSITIVE_INFINITY, isSilent = false): void {
    const cuts = path.join(this.directory, 'cuts');
    this.#hostBehind(`
      const fs = require('node:fs');
      fs.appendFileSync('${cuts}', 'x');
      let left = fs.statSync('${cuts}').size > ${times} ? Infinity : ${bytes};
      process.stdin.pipe(server.stdin);
      server.stdout.on('data', (bytes) => {
        if (left <= 0) return;
        process.stdout.write(bytes.subarray(0, left), () => left > 0 || ${isSilent} || process.kill(process.pid, 'SIGKILL'));
        left -= bytes.length;
      });`);
  }

  /** A host that runs the command as `server`, behind a script. */
  #hostBehind(script: string): void {
    const file = path.join(this.directory, 'host.cjs');
    fs.writeFileSync(
      file,
      `const { spawn } = require('node:child_process');
      const server = spawn('sh', ['-c', 'exec ' + process.env.SSH_ORIGINAL_COMMAND], { stdio: ['pipe', 'pipe', 'inherit'] });
      server.stdin.on('error', () => {});
      server.on('close', (code) => process.exit(code));
      ${script}`,
    );
    const otherwise = '*) echo "not allowed" >&2; exit 1';
    this.hostIs(`case "$SSH_ORIGINAL_COMMAND" in rsync*) exec '${process.execPath}' ${file};; ${otherwise};; esac`);
  }

  /** Puts a script in the place of the program rsync of this side; `$RSYNC` is the real one. */
  rsyncIs(...lines: readonly string[]): void {
    const real = (process.env['PATH'] ?? '')
      .split(':')
      .map((directory) => path.join(directory, 'rsync'))
      .find((file) => fs.existsSync(file) && !file.startsWith(this.directory));
    this.script('bin/rsync', `RSYNC=${real}`, '[ "$1" = --server ] && exec $RSYNC "$@"', ...lines);
  }

  /** A forced command as sites have it: only a sending rsync, below the job's directory. It knows no quotes. */
  onlyRsync(): string {
    const isAllowed = `"rsync --server --sender "*" . ${this.cluster}/"*) ;;`;
    const cases = `*..*) echo "no way up" >&2; exit 1;; ${isAllowed} *) echo "not allowed here" >&2; exit 1;;`;
    return this.script(
      'only.sh',
      `case "$SSH_ORIGINAL_COMMAND" in ${cases} esac`,
      'set -f; exec $SSH_ORIGINAL_COMMAND',
    );
  }

  /** Writes a script for a forced command. */
  script(name: string, ...lines: readonly string[]): string {
    const file = path.join(this.directory, name);
    fs.writeFileSync(file, `${['#!/bin/sh', ...lines].join('\n')}\n`, { mode: 0o755 });
    return file;
  }
}
