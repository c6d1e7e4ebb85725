/** Results by direct transfer: one large file, many small ones, and the ways of keys that may do less than rsync. */
import { createCipheriv } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { resultsIn, writeConfig } from './agent-config.ts';
import { type LoopbackSshd, startSshd } from './loopback-sshd.ts';
import type { Measurement, Place, Prepared, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run, runProcess } from './processes.ts';
import { leastCode, MANY, MIB } from './result-sides.ts';
import { JOB_ID } from './service/job.ts';
import { type Service, startService } from './service/process.ts';
import type { SyncFigures } from './sides/sync-results.ts';
import { warmDisk } from './warm-disk.ts';

const SYNC = fileURLToPath(new URL('./sides/sync-results.js', import.meta.url));
const KIB = 1024;
const FILES_A_DIRECTORY = 100;

interface Files {
  readonly count: number;
  readonly bytes: number;
  /** How many of them have blanks in their names. */
  readonly withBlanks?: number;
}

/** Files with bytes that no program can compress, below `directory`. Their names, as a service lists them. */
function makeFiles(directory: string, { count, bytes, withBlanks = 0 }: Files): string[] {
  const stream = createCipheriv('aes-128-ctr', 'one key for them', Buffer.alloc(16));
  const zeros = Buffer.alloc(Math.min(bytes, MIB));
  return Array.from({ length: count }, (_, index) => {
    const [before, after] = index < withBlanks ? ['file ', ' of the run.dat'] : ['file-', '.dat'];
    const name = `part-${Math.floor(index / FILES_A_DIRECTORY)}/${before}${index}${after}`;
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

function agent(service: Service, { count, bytes }: Files, directory: string): Side {
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'agent-'));
    const config = writeConfig(into, service, { results: { transfer: 'direct' } });
    const { figures, stdout } = await run(process.execPath, [...OUR_NODE_ARGS, SYNC, config, JOB_ID]);
    const synced = JSON.parse(stdout) as SyncFigures;
    const arrived = fs.readdirSync(resultsIn(into), { recursive: true, withFileTypes: true });
    removeIfFew(into, count);
    const files = arrived.filter((entry) => entry.isFile()).length;
    if (files !== count || synced.bytes < count * bytes) throw new Error(`${files} files arrived: ${stdout}`);
    return { ...figures, seconds: synced.seconds };
  };
}

function rsync({ ssh, username }: LoopbackSshd, from: string, { count }: Files, directory: string): Side {
  return async () => {
    const into = fs.mkdtempSync(path.join(directory, 'rsync-'));
    const figures = await runProcess('rsync', [
      '-r',
      '-e',
      ssh.join(' '),
      `${username}@127.0.0.1:${from}/`,
      `${into}/`,
    ]);
    removeIfFew(into, count);
    return figures;
  };
}

function removeIfFew(directory: string, count: number): void {
  if (count < MANY) fs.rmSync(directory, { recursive: true });
}

/** The same way in one command, whatever the key permits; then hashes, flushes, names and rows. */
function least(
  { ssh, port, username }: LoopbackSshd,
  from: string,
  { count, bytes }: Files,
  way: Way,
  place: Place,
): Side {
  const host = `${username}@127.0.0.1:${from}`;
  // Without the program, and the port, which is another option of the others.
  const options = [...ssh.slice(1, -2), '-q', '-P', String(port), '-r', host, '.'];
  const command = {
    rsync: ['rsync', '-r', '-e', ssh.join(' '), `${host}/`, './'],
    scp: ['scp', '-O', ...options],
    sftp: ['sftp', ...options],
  }[way];
  return leastCode({ command }, { files: count, bytes: count * bytes }, place);
}

/** What the key of the agent is forced to, by the way that is left to it then. */
const FORCED = {
  rsync: undefined,
  scp: `/bin/sh -c 'case "$SSH_ORIGINAL_COMMAND" in "scp -f "*) exec $SSH_ORIGINAL_COMMAND ;; *) exit 1 ;; esac'`,
  sftp: 'internal-sftp',
} as const;
type Way = keyof typeof FORCED;

async function prepare(files: Files, place: Place, way: Way = 'rsync'): Promise<Prepared> {
  const { directory } = place;
  const sshd = await startSshd(path.join(directory, 'ssh'));
  const forced = await startSshd(path.join(directory, 'forced'), FORCED[way]);
  const from = path.join(directory, 'cluster');
  const listed = makeFiles(from, files);
  const transferMethod = methodFor(from, forced);
  const service = await startService({ listed, listedForOthers: way === 'rsync' ? 0 : 1, transferMethod }, directory);
  const bytes = files.count * files.bytes;
  return {
    sides: {
      agent: agent(service, files, directory),
      least: least(sshd, from, files, way, place),
      rsync: rsync(sshd, from, files, directory),
    },
    before: () => warmDisk(directory, bytes),
    close: async () => {
      await service.stop();
      await forced.stop();
      await sshd.stop();
    },
  };
}

const needs = ['rsync', 'ssh', 'ssh-keygen'];
const goal = { kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'rsync', atMost: 1.1 } as const;
const leastGoal = { ...goal, what: 'the same, against the least code for the same work', peer: 'least', atMost: 1.5 };

export const directLarge: Measurement = {
  name: 'direct-large',
  needs,
  goals: [{ ...goal, what: 'direct transfer of 1 GiB, against the bare `rsync` command' }],
  prepare: (place) => prepare({ count: 1, bytes: place.quick ? 16 * MIB : 1024 * MIB }, place),
};

export const directMany: Measurement = {
  name: 'direct-many',
  needs,
  goals: [
    { ...goal, what: 'direct transfer of 10,000 files of 10 KB, against the bare `rsync` command', atMost: 1.5 },
    leastGoal,
  ],
  prepare: (place) => prepare({ count: place.quick ? 300 : 10_000, bytes: 10 * KIB }, place),
};

/** By a key that may do nothing else; the agent found that out for one file of another job. */
const byWay = (way: 'scp' | 'sftp'): Measurement => ({
  name: `direct-${way}`,
  needs: [...needs, way],
  goals: [
    {
      ...goal,
      what: `300 files of 10 KB over ${way}, for a second job of the host, against the bare \`rsync\` command`,
      atMost: 2,
    },
    leastGoal,
  ],
  prepare: (place) => prepare({ count: place.quick ? 30 : 300, bytes: 10 * KIB }, place, way),
});

/** The forced command takes such names apart at the blanks. */
export const directNames: Measurement = {
  name: 'direct-scp-names',
  needs: [...needs, 'scp'],
  goals: [
    {
      ...{ ...goal, atMost: 3 },
      what: '308 files of 10 KB, 300 of them with blanks in their names, over scp, against the bare `rsync` command',
    },
  ],
  prepare: (place) =>
    prepare({ count: place.quick ? 38 : 308, withBlanks: place.quick ? 30 : 300, bytes: 10 * KIB }, place, 'scp'),
};

export const directByScp = byWay('scp');
export const directBySftp = byWay('sftp');
