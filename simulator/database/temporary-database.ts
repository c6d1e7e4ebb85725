/**
 * A PostgreSQL for as long as this program lives, in a directory of its own, on the loopback interface and with a
 * password. What it holds survives its own end, not one of the machine.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { JobtailError } from '../../src/errors.ts';
import { freePort } from '../free-port.ts';
import { Keeper } from './keeper.ts';
import type { DatabasePrograms } from './programs.ts';

const USER = 'jobtail';
/** PostgreSQL refuses to run as root: the user and the group without rights, by the custom of most systems. */
const UNPRIVILEGED = 65_534;
const READY_MS = 60_000;
const TICK_MS = 10;
/** A port that was free may be taken a moment later. */
const MAX_TRIES = 5;
/** In the log of a server that does not start; clients that are too early get a message that it is starting. */
const FAILED = /FATAL: {2}(?!the database system is )|database system is shut down/;

export class TemporaryDatabase {
  /** With the password. */
  readonly url: string;
  /** On 127.0.0.1. */
  readonly port: number;
  readonly #directory: string;
  readonly #keeper: Keeper;

  private constructor(programs: DatabasePrograms, directory: string, address: { port: number; password: string }) {
    this.port = address.port;
    this.url = `postgresql://${USER}:${address.password}@127.0.0.1:${address.port}/postgres`;
    this.#directory = directory;
    const command = [programs.postgres, '-D', dataOf(directory), ...settings(address.port)];
    this.#keeper = new Keeper({ directory, command, ...surroundings() });
  }

  /** Starts one that responds. @throws JobtailError `local-io` with the output of PostgreSQL */
  static async start(programs: DatabasePrograms): Promise<TemporaryDatabase> {
    for (let tries = 1; ; tries++) {
      const { directory, password } = await makeCluster(programs);
      const database = new TemporaryDatabase(programs, directory, { port: await freePort(), password });
      try {
        await database.start();
        return database;
      } catch (error) {
        await database.remove();
        if (tries === MAX_TRIES) throw error;
      }
    }
  }

  /** Of the server's first process; undefined while there is none. */
  get pid(): number | undefined {
    const [line = ''] = readIfThere(this.#pidFile).split('\n');
    return line === '' ? undefined : Number(line);
  }

  /** Starts it again, at the same port and with what it held. */
  async start(): Promise<void> {
    await this.#keeper.report('start');
    const endsAt = performance.now() + READY_MS;
    while (!this.#isReady()) {
      const output = readIfThere(path.join(this.#directory, 'server.log'));
      if (FAILED.test(output) || performance.now() > endsAt) throw failed('postgres', output);
      await sleep(TICK_MS);
    }
  }

  /** As an administrator does it: connected clients are disconnected. */
  stop(): Promise<void> {
    return this.#keeper.report('stop');
  }

  /** As a crash does it: what was committed is there when it starts again. */
  kill(): Promise<void> {
    return this.#keeper.report('kill');
  }

  /** Ends it and removes its directory; may be called again. */
  async remove(): Promise<void> {
    await this.#keeper.end();
    // The keeper has no rights in the directory if it belongs to root alone.
    rmSync(this.#directory, { recursive: true, force: true });
  }

  get #pidFile(): string {
    return path.join(dataOf(this.#directory), 'postmaster.pid');
  }

  #isReady(): boolean {
    return /^ready\s*$/m.test(readIfThere(this.#pidFile));
  }
}

const dataOf = (directory: string) => path.join(directory, 'data');

/** Not flushed: it is thrown away with the machine's memory. */
function settings(port: number): string[] {
  const values = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' };
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Of all its programs: messages in English, and another user where this one is root. */
function surroundings() {
  const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
  return process.getuid?.() === 0 ? { env, uid: UNPRIVILEGED, gid: UNPRIVILEGED } : { env };
}

async function makeCluster({ initdb }: DatabasePrograms): Promise<{ directory: string; password: string }> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'jobtail-database-'));
  const password = randomBytes(12).toString('hex');
  const passwordFile = path.join(directory, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const { uid, gid = 0 } = surroundings();
  if (uid !== undefined) for (const place of [passwordFile, directory]) chownSync(place, uid, gid);
  const how = ['--auth=scram-sha-256', `--pwfile=${passwordFile}`, '--encoding=UTF8', '--locale=C', '--no-sync'];
  try {
    const line = ['--pgdata', dataOf(directory), '--username', USER, ...how];
    await promisify(execFile)(initdb, line, { cwd: '/', ...surroundings() });
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    const { stderr, message } = error as Error & { readonly stderr: string };
    throw failed('initdb', stderr || message, error);
  }
  return { directory, password };
}

function failed(program: string, output: string, cause?: unknown): JobtailError {
  const lines = output.trim().split('\n');
  const why = lines.find((line) => line.includes('FATAL')) ?? lines.at(-1);
  return new JobtailError('local-io', `${program} failed: ${why}`, { cause });
}

/** Empty if there is no such file. */
function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
