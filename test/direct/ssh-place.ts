/** A place for transfers by SSH, and the methods that a service would lend for it. */
import fs from 'node:fs';
import path from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { createKeyPair, type KeyFormat } from '../../simulator/cluster/key-pair.ts';
import type { TransferMethod } from '../../src/agent/ports/server.ts';
import type { DirectTransfer } from '../../src/agent/ports/transfer.ts';
import { PrivateDirectory } from '../../src/direct/private-directory.ts';
import { type SshTransferOptions, sshTransfer } from '../../src/direct/ssh-transfer.ts';
import type { Sshd } from '../support/sshd.ts';
import { TransferPlace } from './transfers.ts';

export interface LendOptions {
  /** Where the host is said to be, if not where sshd is. */
  readonly host?: string;
  readonly allow?: boolean;
  readonly command?: string;
  readonly format?: KeyFormat;
}

export class SshPlace extends TransferPlace {
  readonly runtime = path.join(this.directory, 'runtime');
  readonly knownHosts = path.join(this.directory, 'known_hosts');

  constructor() {
    super();
    fs.mkdirSync(this.runtime, { mode: 0o700 });
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

  async lend(sshd: Sshd, options: LendOptions = {}): Promise<TransferMethod> {
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
    fs.mkdirSync(path.join(this.directory, 'bin'));
    this.script(
      'bin/ssh',
      'case "$*" in "-Q cipher") exit 0;; esac',
      `export SSH_ORIGINAL_COMMAND="$(echo "$*" | sed 's/^.* transfer //')"`,
      `exec ${host}`,
    );
    vi.stubEnv('PATH', `${path.join(this.directory, 'bin')}:${process.env['PATH'] ?? ''}`);
    onTestFinished(() => void vi.unstubAllEnvs());
  }

  /** Writes a script for a forced command. */
  script(name: string, ...lines: readonly string[]): string {
    const file = path.join(this.directory, name);
    fs.writeFileSync(file, `${['#!/bin/sh', ...lines].join('\n')}\n`, { mode: 0o755 });
    return file;
  }
}

/** The command lines of all processes. */
export function commandLines(): string[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    });
}
