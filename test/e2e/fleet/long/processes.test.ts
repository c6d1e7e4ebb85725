/** A fleet of processes over a PostgreSQL and one directory of mirrors: lost agents, commands at any agent, a drain, its set-up. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { FLEET_NODE } from '../../../../bench/fleet-node.ts';
import type { JobDescription } from '../../../../simulator/control.ts';
import { requestOf } from '../../../support/e2e-job.ts';
import { Place, readIfThere, type Sections } from '../../../support/e2e-place.ts';
import type { Program } from '../../../support/e2e-program.ts';
import { until } from '../../../support/e2e-until.ts';
import { HEARTBEAT_SECONDS, startServer } from '../../../support/fleet-parts.ts';
import { query, Relay } from '../../../support/fleet-relay.ts';
import { needs } from '../../../support/needs.ts';

/** From the loss of an agent to the last of its jobs having another owner. */
const TAKEOVER_MS = 60_000;
/** Between two owners of a job that is handed over: beyond a poll, with the time a command takes on a busy machine. */
const GAP_MS = 5_000;
/** A rewritten file that looks shorter is looked at for seconds. */
const LONGER_LINES = 40;
/** The bytes of a line go over the edges of characters. */
const TEXT = 'příliš žluťoučký kůň 敏捷的棕色狐狸 \u{1F680}';

/** A live file that only the test writes: it knows all that was ever in it, and so what its mirror may hold. */
class WrittenFile {
  readonly name: string;
  readonly #real: string;
  readonly #mirror: string;
  /** By generation, each from its beginning on. */
  readonly #contents: Buffer[] = [Buffer.alloc(0)];
  /** So many bytes of a former generation were in the mirror. */
  readonly #mirrored: number[] = [];
  #lines = 0;

  constructor(name: string, real: string, mirror: string) {
    this.name = name;
    this.#real = real;
    this.#mirror = mirror;
  }

  /** So many lines more, each unlike any other: also the first character of each generation is another one. */
  append(lines = 3): void {
    const generation = this.#contents.length - 1;
    const letter = String.fromCodePoint('A'.charCodeAt(0) + generation);
    const line = () => `${letter} ${this.name} line ${this.#lines++} ${TEXT}\n`;
    const bytes = Buffer.from(Array.from({ length: lines }, line).join(''));
    fs.appendFileSync(this.#real, bytes);
    this.#contents[generation] = Buffer.concat([this.#current, bytes]);
  }

  /** Another content, longer than the one before. */
  rewrite(): void {
    const lines = this.#current.toString().split('\n').length + LONGER_LINES;
    this.#mirrored.push(readIfThere(this.#mirror)?.length ?? 0);
    this.#contents.push(Buffer.alloc(0));
    fs.truncateSync(this.#real);
    this.append(lines);
  }

  get isEqual(): boolean {
    return readIfThere(this.#mirror)?.equals(this.#current) ?? false;
  }

  /** Whether the mirror, and the old ones beside it, are each the beginning of a generation older than the one before. */
  get isSound(): boolean {
    let younger = this.#contents.length;
    return [readIfThere(this.#mirror) ?? Buffer.alloc(0), ...this.#kept].every((bytes) => {
      const isIt = (content: Buffer, generation: number) =>
        generation < younger && content.subarray(0, bytes.length).equals(bytes);
      younger = this.#contents.findLastIndex(isIt);
      return younger >= 0;
    });
  }

  /** Whether all that was in the mirror of former generations is kept. */
  get isKept(): boolean {
    return this.#mirrored.every((length, generation) => {
      const former = this.#contents[generation]?.subarray(0, length);
      return this.#kept.some((bytes) => former?.equals(bytes.subarray(0, length)));
    });
  }

  /** The old generations, the youngest first. */
  get #kept(): Buffer[] {
    return [1, 2, 3, 4, 5].flatMap((number) => readIfThere(`${this.#mirror}.${number}`) ?? []);
  }

  get #current(): Buffer {
    return this.#contents.at(-1) ?? Buffer.alloc(0);
  }
}

/** One agent: a process with its own state and its own way to the database. */
interface FleetAgent {
  readonly relay: Relay;
  /** `agent run`, as it was started last. */
  program: Program;
  readonly start: (args: readonly string[]) => Program;
  /** What a command with its configuration prints that ends with 0. */
  readonly says: (...args: string[]) => Promise<string>;
}

/** An ownership of a job, by the clock of the database, in ms. */
interface Attempt {
  readonly jobId: string;
  readonly attempt: number;
  readonly agent: string;
  readonly takenAt: number;
  /** Null while it goes on. */
  readonly endedAt: number | null;
  readonly how: string | null;
}

async function fleetOf(context: TestContext, count: number, names: readonly string[], inFleet: Sections = {}) {
  const database = await startServer();
  // What is asked for first is done last: the agents are ended before their database.
  context.onTestFinished(() => database.remove());
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const jobs: JobDescription[] = [];
  for (let left = count; left > 0; left -= 1) jobs.push(await sandbox.submit({ tasks: [{}] }));
  /** One file of each job only grows, and one may be rewritten. */
  const filesOf = ({ jobId, tasks }: JobDescription) =>
    tasks.flatMap(({ taskId, files: real }) =>
      (['stdout', 'log'] as const).map((file) => {
        return new WrittenFile(`${jobId}/${file}`, real[file], place.mirrorOf(jobId, taskId, file));
      }),
    );
  const files = new Map(jobs.map((job) => [job.jobId, filesOf(job)] as const));
  const all = [...files.values()].flat();

  const added = async (name: string, imports: readonly string[] = []): Promise<FleetAgent> => {
    const relay = await Relay.start(database.port);
    context.onTestFinished(() => relay.close());
    const directory = path.join(place.directory, name);
    fs.mkdirSync(directory);
    const urlFile = path.join(directory, 'url');
    fs.writeFileSync(urlFile, database.url.replace(`:${database.port}/`, `:${relay.port}/`), { mode: 0o600 });
    const configFile = path.join(directory, 'config.yaml');
    const sections = {
      ...{ results: { enabled: false }, poll: { minIntervalSeconds: 0.3, maxIntervalSeconds: 1 } },
      ...{ watch: jobs.map(requestOf), state: { directory: path.join(directory, 'state') } },
      fleet: { urlFile, name, heartbeatSeconds: HEARTBEAT_SECONDS, ...inFleet },
    };
    fs.writeFileSync(configFile, place.configText(sandbox, sections));
    const node = [...FLEET_NODE, ...imports.flatMap((module) => ['--import', module])];
    const start = (args: readonly string[]) => place.startAt(configFile, args, { node });
    const says = async (...args: string[]) => {
      const { code, stdout, stderr } = await start(args).ended;
      if (code !== 0) throw new Error(`${name}: ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
      return stdout;
    };
    return { relay, start, says, program: undefined as unknown as Program };
  };
  const run = async (agent: FleetAgent) => {
    agent.program = agent.start(['run']);
    await agent.program.logs('joined the fleet');
  };
  const agents = new Map<string, FleetAgent>();
  for (const name of names) agents.set(name, await added(name));

  /** By job, the oldest first. */
  const attempts = () =>
    query<Attempt>(
      database.url,
      `SELECT job_id::text AS "jobId", attempt::float8 AS attempt, agent, how,
        extract(epoch FROM taken_at)::float8 * 1000 AS "takenAt", extract(epoch FROM ended_at)::float8 * 1000 AS "endedAt"
        FROM jobtail.attempts ORDER BY job_id, attempt`,
    );
  const owners = async () =>
    new Map((await attempts()).flatMap(({ endedAt, jobId, agent }) => (endedAt === null ? [[jobId, agent]] : [])));
  const grow = () => all.forEach((file) => void file.append());
  const untilOwned = (...but: readonly string[]) =>
    until('an owner of each job', async () => {
      const found = await owners();
      return found.size === jobs.length && but.every((name) => ![...found.values()].includes(name));
    });
  const untilSpread = () =>
    until('each agent to have its share', async () => {
      const found = [...(await owners()).values()];
      const shares = names.map((name) => found.filter((owner) => owner === name).length);
      return found.length === jobs.length && Math.max(...shares) - Math.min(...shares) <= 1;
    });
  /** While mirrors are cut, bytes of before and after may be read: what is wrong stays so. */
  const untilEach = (what: 'isEqual' | 'isSound') => {
    const others = () => all.filter((file) => !file[what]).map(({ name }) => name);
    return until(what, () => others().length === 0).catch(() => expect(others(), what).toEqual([]));
  };
  /** At every moment: no mirror holds what never was in its file, no generation is made up, no job had two owners. */
  const expectSound = async () => {
    await untilEach('isSound');
    const found = await attempts();
    const overlaps = found.filter((one, index) => {
      const next = found[index + 1];
      if (next === undefined || next.jobId !== one.jobId) return false;
      return next.attempt <= one.attempt || one.endedAt === null || one.endedAt > next.takenAt;
    });
    expect(overlaps).toEqual([]);
  };
  /** And every mirror is its file, and nothing is lost that was there. */
  const expectEqual = async () => {
    await untilEach('isEqual');
    expect(all.filter(({ isKept }) => !isKept).map(({ name }) => name)).toEqual([]);
    await expectSound();
  };
  const agent = (name: string) => agents.get(name) as FleetAgent;
  const parts = { place, database, jobs, files, all, agent, agents, added, run, attempts, owners, grow };
  return { ...parts, untilOwned, untilSpread, expectSound, expectEqual };
}

type Fleet = Awaited<ReturnType<typeof fleetOf>>;

const LOSSES: readonly (readonly [
  name: string,
  lose: (agent: FleetAgent) => unknown,
  back: (agent: FleetAgent, fleet: Fleet) => unknown,
])[] = [
  ['ben', ({ program }) => program.kill(), (agent, { run }) => run(agent)],
  // For longer than its lease.
  ['ben', ({ program }) => program.signal('SIGSTOP'), ({ program }) => program.signal('SIGCONT')],
  // It has to stop by itself: nothing can be reported to it. All that it said into the silence arrives in the end.
  [
    'cleo',
    async ({ relay, program }) => {
      relay.silence();
      await program.logs('jobs paused, lease possibly expired');
    },
    ({ relay }) => relay.open(),
  ],
];

it(
  'a fleet of processes takes commands at any agent, takes over the jobs of lost ones, and a drained one hands over',
  needs('postgres'),
  async (context) => {
    const names = ['anna', 'ben', 'cleo'];
    const fleet = await fleetOf(context, 18, names);
    const { agent, attempts, database, files, grow, owners, place, run, untilOwned } = fleet;
    grow();
    await Promise.all(names.map((name) => run(agent(name))));
    await fleet.untilSpread();
    await fleet.expectEqual();

    // The same from each side, with the owner of each job.
    const before = await owners();
    const statusOf = async (name: string) =>
      JSON.parse(await agent(name).says('status', '--json')) as {
        readonly agents: readonly object[];
        readonly jobs: readonly { readonly jobId: string; readonly owner: string }[];
      };
    for (const name of names) {
      const { agents, jobs } = await statusOf(name);
      expect(agents).toMatchObject(names.map((each) => ({ name: each, state: 'alive' })));
      expect(new Map(jobs.map(({ jobId, owner }) => [jobId, owner]))).toEqual(before);
    }
    // A job of ben's is synced and ended by anna's command, and the other way round.
    for (const [name, other] of [
      ['anna', 'ben'],
      ['ben', 'anna'],
    ] as const) {
      const { says, start } = agent(name);
      const job = fleet.jobs.find(({ jobId }) => before.get(jobId) === other) as JobDescription;
      const own = files.get(job.jobId) ?? [];
      for (const file of own) file.append(50);
      await says('sync', job.jobId);
      // Without a job service, its end cannot be seen.
      expect(await start(['wait', job.jobId, '--timeout', '1s']).ended).toMatchObject({ code: 3 });
      expect(own.map(({ isEqual }) => isEqual)).toEqual([true, true]);
      for (const file of own) file.append(50);
      expect(await says('unwatch', job.jobId)).toContain('4 verified');
      expect(own.map(({ isEqual }) => isEqual)).toEqual([true, true]);
      await says('verify', job.jobId);
      const ended = await start(['wait', job.jobId]).ended;
      expect(ended).toMatchObject({ code: 1, stdout: expect.stringContaining('it is not followed any more') });
      // A job that ended may be followed again.
      await says('watch', job.jobId, ...job.tasks.flatMap(({ taskId }) => ['--task', taskId]));
    }

    for (const [name, lose, back] of LOSSES) {
      await fleet.untilSpread();
      await fleet.expectEqual();
      const former = await owners();
      grow();
      const lostAt = performance.now();
      await lose(agent(name));
      grow();
      await fleet.expectSound();
      await untilOwned(name);
      expect(performance.now() - lostAt).toBeLessThan(TAKEOVER_MS);
      const after = await owners();
      // No other agent lost a job by it.
      for (const [jobId, owner] of former) if (owner !== name) expect(after.get(jobId)).toBe(owner);
      await fleet.expectEqual();
      // What it was about to write is older than this.
      grow();
      for (const file of fleet.all.filter((_, index) => index % 3 === 0)) file.rewrite();
      await back(agent(name), fleet);
      await fleet.expectSound();
    }
    await fleet.untilSpread();
    await fleet.expectEqual();

    // In order: each job has its next owner at once, and the agent is gone.
    const drainedAt = Date.now();
    await agent('ben').says('run', '--drain');
    expect((await agent('ben').program.ended).code).toBe(0);
    await untilOwned('ben');
    const found = await attempts();
    for (const [index, { agent: owner, endedAt, how, jobId }] of found.entries()) {
      const next = found[index + 1];
      if (owner !== 'ben' || endedAt === null || endedAt < drainedAt) continue;
      expect([how, next?.jobId]).toEqual(['handed-over', jobId]);
      expect((next?.takenAt ?? Number.POSITIVE_INFINITY) - endedAt).toBeLessThan(GAP_MS);
    }
    grow();
    await fleet.expectEqual();
    expect((await statusOf('anna')).agents).toMatchObject(['anna', 'cleo'].map((name) => ({ name, jobs: 9 })));

    // The password of the database is nowhere.
    const password = new URL(database.url).password;
    for (const { stdout, stderr } of place.programs) expect(stdout + stderr).not.toContain(password);
    for (const name of names)
      expect(fs.readFileSync(`${place.directory}/${name}/state/agent.db`, 'latin1')).not.toContain(password);
  },
);

const inline = (script: string) => `data:text/javascript,${encodeURIComponent(script)}`;
/** As where npm left pg out: jobtail was installed under an older Node.js, or without optional packages. */
const WITHOUT_PG = inline(`
  import { register } from 'node:module';
  register(${JSON.stringify(
    inline(`
  export async function resolve(specifier, context, next) {
    if (specifier !== 'pg') return await next(specifier, context);
    throw Object.assign(new Error('Cannot find package pg'), { code: 'ERR_MODULE_NOT_FOUND' });
  }`),
  )});`);

it(
  'commands report the database of a fleet, the owner of mirrors, and a missing package',
  needs('postgres'),
  async (context) => {
    const fleet = await fleetOf(context, 1, ['anna', 'ben'], { separateMirrors: true });
    const { agent, agents, database, owners, place } = fleet;
    const anna = agent('anna');
    const reached = /✓ fleet +PostgreSQL \d+.* at 127\.0\.0\.1:\d+\/postgres, 0 agents/;
    expect(await anna.says('check')).toMatch(reached);
    const schemas = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'jobtail%'";
    expect(await query(database.url, schemas), 'it makes nothing').toEqual([]);
    for (const one of agents.values()) await fleet.run(one);
    expect(await anna.says('check')).toContain('2 agents registered');

    await fleet.untilOwned();
    const [[jobId, owner] = ['', '']] = await owners();
    const other = agent(owner === 'anna' ? 'ben' : 'anna');
    const named = `agent ${owner} has the mirrors of job ${jobId}: run this on its machine`;
    expect((await other.start(['tail', jobId]).ended).stderr).toContain(named);
    expect((await agent(owner).start(['tail', jobId]).ended).stderr).not.toContain('has the mirrors');
    expect(await other.says('status', jobId)).toContain(`with ${owner} (attempt 1)`);

    const urlFile = `${place.directory}/anna/url`;
    fs.writeFileSync(urlFile, fs.readFileSync(urlFile, 'utf8').replace(/:[^:@]+@/, ':hunter2hunter2@'));
    const { code, stdout, stderr } = await anna.start(['check']).ended;
    expect([code, stdout]).toEqual([8, expect.stringMatching(/✗ fleet .*password authentication failed/)]);
    expect(stdout).toContain('check the user and the password of the address');
    expect(`${stdout}${stderr}`).not.toContain('hunter2');

    const without = await fleet.added('cleo', [WITHOUT_PG]);
    for (const words of [['run'], ['status'], ['watch', '501'], ['check']]) {
      const ended = await without.start(words).ended;
      const said = `${ended.stdout}${ended.stderr}`;
      expect([words, said]).toEqual([
        words,
        expect.stringContaining('the package pg, which a fleet needs, is missing'),
      ]);
      expect([words, said]).toEqual([words, expect.stringContaining('install jobtail again')]);
      expect([words, ended.code, said.includes('    at ')]).toEqual([words, 3, false]);
    }
  },
);
