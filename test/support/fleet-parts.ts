/** Parts of a fleet within the process of a test, over a database of their own: real ones, but for what follows the jobs. */

import { it, onTestFinished } from 'vitest';
import { FLEET_PLACE } from '../../bench/fleet-node.ts';
import { findDatabasePrograms } from '../../simulator/database/programs.ts';
import { TemporaryDatabase } from '../../simulator/database/temporary-database.ts';
import type { Follower } from '../../src/agent/ownership.ts';
import type { Log } from '../../src/agent/ports/host.ts';
import type { FleetSettings } from '../../src/config/schema.ts';
import type { Member } from '../../src/fleet/agents/agents.ts';
import { FleetClient } from '../../src/fleet/commands/client.ts';
import { type Joined, openFleet } from '../../src/fleet/joined.ts';
import { FleetMember } from '../../src/fleet/member.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import { logLine } from '../../src/printable.ts';
import { Secrets } from '../../src/redact.ts';
import type { WatchRequest } from '../../src/store/rows.ts';
import { Store } from '../../src/store/store.ts';
import { type Clock, systemClock } from '../../src/system/clock.ts';
import { until } from './e2e-until.ts';
import { connectTo, query, Relay } from './fleet-relay.ts';
import { needs } from './needs.ts';
import { temporaryDirectory, type WithEnd } from './temp-directory.ts';

/** The shortest that the configuration takes. */
export const HEARTBEAT_SECONDS = 10;
const SCHEMA = 'jobtail';

/** The sessions that wait for a lock in the database of the test. */
export const LOCKED = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;

export interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly text: string;
}

/** An agent of the fleet whose jobs nobody polls. */
interface TestMember {
  readonly member: FleetMember;
  readonly store: Store;
  readonly log: readonly Line[];
  /** Jobs that it was reported to follow, and not to leave since. */
  readonly followed: ReadonlySet<JobId>;
}

type MemberOptions = ConstructorParameters<typeof FleetMember>[0];
type TestMemberOptions = Partial<Pick<MemberOptions, 'unready' | 'pollAgeMs' | 'clock' | 'mirror' | 'url'>> &
  Partial<Pick<FleetSettings, 'maxJobs' | 'heartbeatMs' | 'separateMirrors'>> & {
    readonly configured?: readonly WatchRequest[];
    /** What its state has before it joins. */
    readonly prepare?: (store: Store) => void;
    readonly onRefresh?: () => void;
    /** Of a relay on the way to the database. */
    readonly port?: number;
  };

/** The PostgreSQL of all tests of this process: starting one takes longer than most of them. It ends with the process. */
let shared: Promise<TemporaryDatabase> | undefined;
let databases = 0;

/** One that the caller ends. */
export async function startServer(): Promise<TemporaryDatabase> {
  const programs = findDatabasePrograms([FLEET_PLACE]);
  if (programs === undefined) throw new Error('there is no PostgreSQL');
  return TemporaryDatabase.start(programs);
}

/** A test beside the others of its file, over an empty database. */
export function fleetTest(title: string, work: (fleet: FleetParts) => Promise<void>): void {
  it.concurrent(title, needs('postgres'), async (test) => work(await FleetParts.make(test)));
}

export class FleetParts {
  readonly #port: number;
  readonly #url: string;
  readonly test: WithEnd;

  private constructor(port: number, url: string, test: WithEnd) {
    this.#port = port;
    this.#url = url;
    this.test = test;
  }

  /** An empty database, which is dropped with the test. */
  static async make(test: WithEnd = { onTestFinished }): Promise<FleetParts> {
    shared ??= startServer();
    const { port, url } = await shared;
    databases += 1;
    const name = `test_${databases}`;
    await query(url, `CREATE DATABASE ${name}`);
    test.onTestFinished(async () => void (await query(url, `DROP DATABASE ${name} WITH (FORCE)`)));
    const own = new URL(url);
    own.pathname = `/${name}`;
    return new FleetParts(port, own.href, test);
  }

  /** A way to the database that can fall silent. */
  async relay(): Promise<Relay> {
    const relay = await Relay.start(this.#port);
    this.test.onTestFinished(() => relay.close());
    return relay;
  }

  /** As an agent, by its name; over a relay, if its port is given. */
  async join(name: string, port = this.#port): Promise<Joined> {
    const joined = await openFleet(this.addressAt(port), name, { instance: '', onNotice() {}, onConnect() {} });
    this.test.onTestFinished(() => joined.close());
    return joined;
  }

  /** The same, once commands were given to follow the jobs of these numbers. */
  async ordered(name: string, ...numbers: readonly number[]): Promise<Joined> {
    const joined = await this.join(name);
    await joined.commands.give(watches(...numbers));
    return joined;
  }

  /** The settings of the agent anna. */
  get settings(): FleetSettings {
    const limits = { name: 'anna', maxJobs: 1, heartbeatMs: 10_000, drainOnStop: false, separateMirrors: false };
    return { ...limits, schema: SCHEMA, url: this.#url, urlFile: null, urlCredential: null };
  }

  /** Past the fleet. */
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    return query<Row>(this.#url, text, values);
  }

  /** A session of its own, past the fleet. */
  async session() {
    const session = await connectTo(this.#url);
    this.test.onTestFinished(() => session.end());
    return session;
  }

  /** Starts an agent, which ends with the test. */
  start(
    name: string,
    { configured = [], prepare, onRefresh = () => {}, port, ...options }: TestMemberOptions,
  ): TestMember {
    const { maxJobs = 2_000, heartbeatMs = HEARTBEAT_SECONDS * 1_000, separateMirrors = false, ...parts } = options;
    const directory = temporaryDirectory(undefined, this.test);
    const store = new Store({ directory, service: 'https://cluster.example', owner: true, now: Date.now });
    store.transaction(() => prepare?.(store));
    const log: Line[] = [];
    const followed = new Set<JobId>();
    const member = new FleetMember({
      ...{ ...this.addressAt(port ?? this.#port), store, log: logTo(log), clock: QUICK, mirror: 'shared' },
      ...{ endTransfer: async () => {}, pollAgeMs: () => null, unready: () => undefined },
      about: { host: 'here', pid: process.pid, version: '0', view: null },
      ...parts,
      settings: { ...this.settings, name, maxJobs, heartbeatMs, separateMirrors, url: null },
    });
    const follower: Follower = {
      take: (jobIds) => jobIds.forEach((jobId) => void followed.add(jobId)),
      release: async (jobId) => void followed.delete(jobId),
      refresh: onRefresh,
    };
    this.test.onTestFinished(async () => {
      await member.stop();
      store.close();
    });
    member.attach(follower, configured, () => new Set());
    member.start();
    return { member, store, log, followed };
  }

  /** The same, once it follows so many jobs. */
  async following(jobs: number, name: string, options: TestMemberOptions): Promise<TestMember> {
    const started = this.start(name, options);
    await until(`${name} to follow ${jobs}`, () => started.followed.size === jobs);
    return started;
  }

  /** What a command reads and asks; over a relay, if its port is given. It is closed with the test. */
  async client(port = this.#port): Promise<FleetClient> {
    const client = await FleetClient.open(this.addressAt(port));
    this.test.onTestFinished(() => client.close());
    return client;
  }

  get address() {
    return this.addressAt(this.#port);
  }

  /** Over a relay, by its port. */
  addressAt(port: number) {
    const url = this.#url.replace(`:${this.#port}/`, `:${port}/`);
    return { url, schema: SCHEMA, secrets: new Secrets() };
  }
}

/** The timers of an agent end in a quarter of their time: so do the pauses between its rounds. */
const QUICK: Clock = { ...systemClock, timer: (delayMs, callback) => systemClock.timer(delayMs / 4, callback) };

/** A clock on which time passes so many times as fast: an agent waits for nothing longer than its database does. */
export function fastClock(times: number): Clock {
  const [startedAt, begun] = [systemClock.now(), systemClock.monotonic()];
  const passed = () => (systemClock.monotonic() - begun) * times;
  return { ...QUICK, now: () => Math.round(startedAt + passed()), monotonic: () => begun + passed() };
}

/** A clock whose monotonic time a test puts ahead. */
export function clockAhead() {
  const clock = { ...QUICK, aheadMs: 0, monotonic: () => systemClock.monotonic() + clock.aheadMs };
  return clock;
}

/** An order for a job with one task. */
export const orderFor = (number: number): WatchRequest => ({
  ...{ jobId: String(number) as JobId, tasks: ['9001' as TaskId], files: LIVE_FILE_NAMES, results: false },
  ...{ settleAfterMs: null, source: 'command' },
});

/** An agent as the others see it. */
export const memberOf = (name: string, more: Partial<Member> = {}): Member => ({
  ...{ name, stateId: name, instance: '', mostJobs: 1, leaseMs: 600_000, mirror: '' },
  ...{ about: { host: 'here', pid: 1, version: '0', view: null }, ...more },
});

/** Commands to follow such jobs. */
export const watches = (...numbers: readonly number[]) =>
  numbers.map((number) => ({ jobId: orderFor(number).jobId, kind: 'watch', body: orderFor(number) }) as const);

function logTo(lines: Line[]): Log {
  const say = (level: Line['level']) => (fields: object, phrase: string) =>
    void lines.push({ level, message: phrase, text: logLine({ ...fields }, phrase) });
  return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
}
