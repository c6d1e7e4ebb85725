/** Results by direct transfer: one large file, and many small ones. */
import { createCipheriv } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type LoopbackSshd, startSshd } from './loopback-sshd.ts';
import type { Measurement, Place, Prepared, Side } from './measurement.ts';
import { runProcess } from './processes.ts';
import { agent, MIB } from './result-sides.ts';
import { warmDisk } from './rounds.ts';
import { startService } from './service/process.ts';

const KIB = 1024;
const FILES_A_DIRECTORY = 100;

interface Files {
  readonly count: number;
  readonly bytes: number;
}

/** Files with bytes that no program can compress, below `directory`. Their names, as a service lists them. */
function makeFiles(directory: string, { count, bytes }: Files): string[] {
  const stream = createCipheriv('aes-128-ctr', 'one key for them', Buffer.alloc(16));
  const zeros = Buffer.alloc(Math.min(bytes, MIB));
  return Array.from({ length: count }, (_, index) => {
    const name = `part-${Math.floor(index / FILES_A_DIRECTORY)}/file-${index}.dat`;
    const file = path.join(directory, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const descriptor = fs.openSync(file, 'w');
    for (let at = 0; at < bytes; at += zeros.length) fs.writeSync(descriptor, stream.update(zeros));
    fs.closeSync(descriptor);
    return `/${name}`;
  });
}

/** GetFileTransferMethodResult for files below `directory`. */
function methodFor(directory: string, { port, username, privateKeyFile, publicKeyFile }: LoopbackSshd): string {
  const text = (file: string) => fs.readFileSync(file, 'utf8');
  const credentials = `<username>${username}</username><privateKey>${text(privateKeyFile)}</privateKey><publicKey>${text(publicKeyFile).trim()}</publicKey>`;
  return `<serverHostname>127.0.0.1:${port}</serverHostname><sharedBasepath>${directory}</sharedBasepath><protocol>SftpScp</protocol><credentials>${credentials}</credentials>`;
}

function rsync({ ssh, username }: LoopbackSshd, from: string, directory: string): Side {
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'rsync-'));
    return runProcess('rsync', ['-r', '-e', ssh.join(' '), `${username}@127.0.0.1:${from}/`, `${into}/`]);
  };
}

async function prepare(files: Files, place: Place): Promise<Prepared> {
  const { directory } = place;
  const sshd = await startSshd(path.join(directory, 'ssh'));
  const from = path.join(directory, 'cluster');
  const listed = makeFiles(from, files);
  const transferMethod = methodFor(from, sshd);
  const service = await startService({ listed, transferMethod }, directory);
  const bytes = files.count * files.bytes;
  return {
    sides: {
      agent: agent(service, { files: files.count, bytes, transfer: 'direct' }, place),
      rsync: rsync(sshd, from, directory),
    },
    before: () => warmDisk(directory, bytes),
    close: async () => {
      await service.stop();
      await sshd.stop();
    },
  };
}

const needs = ['rsync', 'ssh', 'ssh-keygen'];
const goal = { kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'rsync', atMost: 1.1 } as const;

export const directLarge: Measurement = {
  name: 'direct-large',
  needs,
  goals: [{ ...goal, what: 'direct transfer of 1 GiB, against the bare `rsync` command' }],
  prepare: (place) => prepare({ count: 1, bytes: place.quick ? 16 * MIB : 1024 * MIB }, place),
};

export const directMany: Measurement = {
  name: 'direct-many',
  needs,
  goals: [{ ...goal, what: 'direct transfer of 10,000 files of 10 KB, against the bare `rsync` command', atMost: 1.5 }],
  prepare: (place) => prepare({ count: place.quick ? 300 : 10_000, bytes: 10 * KIB }, place),
};
