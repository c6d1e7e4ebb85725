/**
 * Agents of a fleet round by round: what each has of a job that it loses or hands off, and that comes back. A step of a case
 * in rounds.txt names the agent and what it does: `next` is the next process of anna, `far` has mirrors of its own.
 */
import { type EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import PQueue from 'p-queue';
import { expect, it, vi } from 'vitest';
import { asJobtailError, type ErrorCode, JobtailError } from '../../src/errors.ts';
import type { FleetSummary } from '../../src/fleet/agents/agents.ts';
import { Readiness } from '../../src/fleet/agents/readiness.ts';
import type { Commands } from '../../src/fleet/commands/commands.ts';
import type { FleetContext } from '../../src/fleet/owners/following.ts';
import { LeasedJobs } from '../../src/fleet/owners/leased-jobs.ts';
import { Rounds } from '../../src/fleet/rounds.ts';
import { Handover } from '../../src/fleet/rows/handover.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { until } from '../support/e2e-until.ts';
import { expectCases } from '../support/errors.ts';
import { FleetParts, memberOf, orderFor, watches } from '../support/fleet-parts.ts';
import { HeldClock } from '../support/held-clock.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const LEASE_MS = 60_000;
const GRANT = { protocol: 'SftpScp', host: 'h', basePath: '/', username: 'u', publicKey: 'k' } as const;
const REPORT = { pollAgeMs: null, callsLastMinute: 0, capacity: 100, lacks: null, notFollowed: 0 };
const ONE = orderFor(1).jobId;

/** Of many, their number. */
const few = (all: readonly string[], between = ' ') => (all.length > 9 ? `${all.length} jobs` : all.join(between));

/** An agent whose rounds the test begins. */
async function agentOf(fleet: FleetParts, name: string, mirror: string) {
  const joined = await fleet.join(name);
  const member = memberOf(name, { mostJobs: 100, leaseMs: LEASE_MS, mirror });
  await joined.agents.join(member);
  const clock = new HeldClock();
  const directory = temporaryDirectory(undefined, fleet.test);
  const store = new Store({ directory, service: '', owner: true, now: clock.now });
  fleet.test.onTestFinished(() => store.close());
  const events: string[] = [];
  const say = (_: object, message: string) => void events.push(message);
  const leased = new LeasedJobs(clock, LEASE_MS);
  leased.prolong(leased.moment());
  const acts = {
    refresh: () => {},
    release: async (_: JobId) => {},
    endTransfer: async () => {},
    /** Releases and keys that wait for the test, a round that was begun, and a summary that is used again. */
    held: [] as (() => void)[],
    begun: undefined as Promise<unknown> | undefined,
    summary: undefined as FleetSummary | undefined,
  };
  const changes = store.noteChanges();
  const onLost: Rounds['following']['lost'] = (jobs) => rounds.following.lost(jobs);
  const { database, claims, agents } = joined;
  vi.spyOn(claims, 'fenced');
  const context: FleetContext = {
    ...{ store, clock, mirror, leased, joined, member },
    log: { debug: say, info: say, warn: say, error: say },
    async endTransfer(jobId) {
      await acts.endTransfer();
      events.push(`key of ${jobId} revoked`);
    },
    onFailure: ({ message }) => void events.push(`failed: ${message}`),
    handover: new Handover({ store, database, claims, mirror, onLost }, changes),
    attached: {
      follower: {
        take: (jobIds) => void events.push(`follows ${few(jobIds)}`),
        release: (jobId) => acts.release(jobId),
        refresh() {
          events.push('refreshed');
          acts.refresh();
        },
      },
      configured: [],
      unsent: () => new Set(),
    },
  };
  const readiness = new Readiness({ ...clock, ...context, unready: () => undefined });
  const rounds = new Rounds(context, readiness);
  const summaryOf = (isDraining: boolean): Promise<FleetSummary> => agents.report(member, { ...REPORT, isDraining });
  /** So long after the one before that all its parts are due, unless it is shorter. */
  const round = async (isDraining = false, afterMs = 30_000, mayAcquire = true) => {
    await clock.pass(afterMs);
    leased.prolong(leased.moment());
    return await rounds.round(await summaryOf(isDraining), isDraining, mayAcquire);
  };
  return { ...context, rounds, round, summaryOf, readiness, changes, acts, events, clock };
}

type Agent = Awaited<ReturnType<typeof agentOf>>;

type Steps = Readonly<Record<string, (...words: string[]) => unknown>>;

/** Agents whose rounds the steps of a case begin, and commands that they give. */
class RoundsStory {
  readonly #fleet: FleetParts;
  readonly #commands: Commands;
  readonly #agents = new Map<string, Agent>();
  readonly #given: string[] = [];
  readonly #shown = new Map<string, string>();
  #woken: Promise<unknown> | undefined;

  constructor(fleet: FleetParts, commands: Commands) {
    this.#fleet = fleet;
    this.#commands = commands;
  }

  async do(step: string): Promise<string[]> {
    const [word = '', ...words] = step.split(' ');
    const own = this.#ownSteps[word];
    if (own !== undefined) {
      const result = await own(...words);
      return Array.isArray(result) && result.length > 0 ? [`${word}: ${result.join('; ')}`] : [];
    }
    const agent =
      this.#agents.get(word) ??
      (await agentOf(this.#fleet, word === 'next' ? 'anna' : word, word === 'far' ? 'elsewhere' : 'shared'));
    this.#agents.set(word, agent);
    const [what = '', ...how] = words;
    const act = this.#stepsOf(agent)[what] ?? expect.fail(step);
    const failed = await (async () => act(...how))().then(
      (result) => (result === undefined ? [] : [String(result)]),
      (thrown: unknown) => [`fails: ${asJobtailError(thrown).message}`],
    );
    const state = stateOf(agent);
    const news = [...agent.events.splice(0), ...failed, ...(state === this.#shown.get(word) ? [] : [state])];
    this.#shown.set(word, state);
    return news.length === 0 ? [] : [`${step}: ${news.join('; ')}`];
  }

  get #ownSteps(): Steps {
    const commands = this.#commands;
    const sql = async (...words: string[]) =>
      (await this.#fleet.query<object>(words.join(' '))).map((row) => Object.values(row).join(' '));
    return {
      watch: async (...words) => {
        const numbers = words.flatMap((word) => {
          const [from = 0, to = from] = word.split('-').map(Number);
          return Array.from({ length: to - from + 1 }, (_, index) => from + index);
        });
        await commands.give(watches(...numbers));
      },
      give: async (...words) => {
        const all = words.join(' ').split(', ');
        const given = all.map((each) => {
          const [kind, number] = each.split(' ');
          const body = kind === 'watch' ? orderFor(Number(number)) : null;
          return { jobId: number as JobId, kind: kind as 'sync', body };
        });
        for (const [at, id] of (await commands.give(given)).entries()) this.#given.push(`${all[at]} ${id}`);
      },
      answers: () =>
        Promise.all(
          this.#given.map(async (given) => {
            const [, label = '', id = ''] = /^(.*) (\d+)$/.exec(given) ?? [];
            return `${label} ${JSON.stringify(await commands.answerOf(id)) ?? 'has none'}`;
          }),
        ),
      /** For what wakes agents. */
      listen: async () => {
        const session = await this.#fleet.session();
        await session.query('LISTEN jobtail_orders');
        this.#woken = once(session as unknown as EventEmitter, 'notification');
      },
      woken: async () => [((await this.#woken) as [{ channel: string }])[0].channel],
      sql,
      polled: () =>
        sql(
          "SELECT (row ->> 'polled_at')::bigint - 1793836800000 AS at, row ->> 'error' FROM jobtail.rows WHERE kind = 'jobs'",
        ),
    };
  }

  #stepsOf(agent: Agent): Steps {
    const { acts, attached, clock, handover, leased, rounds, store } = agent;
    const { following } = rounds;
    const error = (code: string, ...words: string[]) => new JobtailError(code as ErrorCode, words.join(' '));
    return {
      round: async (...how) => {
        const after = how.find((word) => /^[\d.]+s$/.test(word)) ?? '30s';
        const isFull = await agent.round(
          how.includes('draining'),
          Number.parseFloat(after) * 1_000,
          !how.includes('unable'),
        );
        return isFull ? 'more wait' : undefined;
      },
      pass: (seconds) => clock.pass(Number(seconds) * 1_000),
      expire: () => following.pauseIfExpired(),
      prolong: () => leased.prolong(leased.moment()),
      resume: async () => following.resumeIfValid((await agent.summaryOf(false)).own),
      left: () => following.left(leased.all()),
      hold: (what) => {
        acts[what as 'release'] = () => new Promise((resolve) => acts.held.push(resolve));
      },
      held: () => until('what is held', () => acts.held.length > 0).then(() => clock.pass(0)),
      free: (what) => {
        acts[what as 'release'] = async () => {};
        for (const done of acts.held.splice(0)) done();
      },
      begin: () => {
        acts.begun = agent.round();
        return until('jobs', () => leased.size > 0).then(() => {});
      },
      end: async () => void (await acts.begun),
      write: (id) => handover.write(leased.all('following').filter(({ jobId }) => jobId === (id ?? jobId))),
      /** Of an owner, since the last time. */
      transactions: () => vi.mocked(agent.joined.claims.fenced).mock.calls.splice(0).length,
      /** Writes all rows, as for a next owner. */
      hand: async () => void (await handover.writeAnd(leased.all('following'), async () => {})),
      /** Writes the row of the first file ahead of the store, which gets it later. */
      fence: async (id, generation) => {
        const [job, [file]] = [leased.get(id as JobId), store.liveFiles.ofJob(id as JobId)];
        if (job !== undefined && file !== undefined)
          await handover.fence(job, { ...file, generation: Number(generation) });
      },
      save: (id, column, value) => {
        const [file] = store.liveFiles.ofJob(id as JobId);
        if (file !== undefined) store.liveFiles.save({ ...file, [column ?? '']: Number(value) });
      },
      report: async () => {
        const agents = [0, 2].map((jobs, at) => ({ name: ['anna', 'bert'][at] ?? '', mostJobs: 10, jobs }));
        // The agents, of a moment before this one acquired its jobs.
        acts.summary = { ...(await agent.summaryOf(false)), agents };
      },
      again: async () => void (await rounds.round(acts.summary, false, true)),
      'free-silent': async () => `released ${await agent.joined.claims.freeSilent()}`,
      unsent: (...ids) => {
        attached.unsent = () => new Set(ids as JobId[]);
      },
      files: (id) =>
        store.liveFiles
          .ofJob(id as JobId)
          .map((row) => `${row.taskId} ${row.file} ${row.position}`)
          .join(', '),
      key: (id) => store.leases.lastOf(id as JobId)?.state,
      refuse: () => {
        acts.release = () => Promise.reject(error('disk-full', 'no room'));
      },
      ask: (id) => void store.leases.ask(id as JobId, 1),
      releasing: (...step) => {
        acts.release = async () => void (await this.do(step.join(' ')));
      },
      stopping: () => {
        acts.refresh = () => {
          attached.follower = undefined;
        };
      },
      away: (what) => {
        const of = what === 'giveWithin' ? agent.joined.commands : handover;
        vi.spyOn(of as Handover, what as 'writeAnd').mockRejectedValueOnce(error('fleet', 'the database is away'));
      },
      /** Of the jobs that are written, only the first is. */
      unanswered: () => {
        const writeAnd = handover.writeAnd.bind(handover);
        vi.spyOn(handover, 'writeAnd').mockImplementationOnce(async (jobs, work) => {
          await writeAnd(jobs.slice(0, 1), work);
          throw error('fleet', 'no response');
        });
      },
      /** No room for a command, after some. */
      full: (after) => {
        const add = store.requests.add.bind(store.requests);
        const spy = vi.spyOn(store.requests, 'add');
        for (let each = 0; each < Number(after); each++) spy.mockImplementationOnce(add);
        spy.mockImplementationOnce(() => {
          throw error('disk-full', 'no room left');
        });
      },
      drop: () => {
        for (const { requestId } of store.requests.open('pass')) store.requests.remove(requestId);
      },
      answer: () => {
        for (const { requestId, jobId } of store.requests.open('pass'))
          store.requests.answer(requestId, JSON.stringify({ error: `of ${jobId}` }));
      },
      state: (id, state) => store.jobs.setState(id as JobId, state as 'settled'),
      stored: (number, tasks = '9001') => {
        const order = { ...orderFor(Number(number)), tasks: tasks === 'none' ? null : [tasks as TaskId] };
        store.transaction(() => store.jobs.watch(order, 0));
      },
      unwatch: (id) => store.jobs.unwatch(id as JobId, 'ended'),
      grant: (id) => store.leases.open({ ...GRANT, leaseId: store.leases.ask(id as JobId, 1) }, 1),
      ungrant: () => {
        for (const { leaseId } of store.leases.allOpen()) store.leases.end(leaseId, 1, null);
      },
      lease: (id, attempt) => store.fleetLeases.save({ jobId: id as JobId, attempt: Number(attempt) }),
      continue: () => rounds.taking.begin(),
      /** With an error for job 1, or lost meanwhile. */
      bring: (code, ...words) => {
        const bring = Handover.prototype.bring.bind(handover);
        vi.spyOn(handover, 'bring').mockImplementation(async (jobs) => {
          const isIn = jobs.some(({ jobId }) => jobId === ONE);
          if (isIn && words.length > 0) throw error(code ?? '', ...words);
          await bring(jobs);
          if (isIn && code === 'lost') following.lost(jobs);
        });
      },
      /** A poll that saw growth, or one without news; the first failure is news. */
      poll: (id, news = 'grown', ...words) => {
        const failure = { code: 'fault', message: words.join(' '), hint: null, since: 1 } as const;
        const polledAt = 1 + clock.now();
        const run = { polledAt, grownAt: news === 'grown' ? polledAt : null, refused: 0, failures: 0 };
        store.jobs.endRun(id as JobId, { ...run, error: news === 'failed' ? failure : null });
      },
      capacity: () => `may own ${agent.readiness.capacity(9)}`,
      notice: () => rounds.noticed(),
      detect: (name, value) => store.capabilities.set(name ?? '', value ?? ''),
      configure: (...numbers) => {
        attached.configured = numbers.map((number) => ({ ...orderFor(Number(number)), source: 'config' }) as const);
      },
      leave: () => agent.joined.agents.leave(agent.member),
      join: () => {},
    };
  }
}

/** Its jobs as it has them, the requests of commands, and the rule. */
function stateOf({ leased, store, changes, rounds }: Agent): string {
  const ids = [...new Set([...leased.all().map(({ jobId }) => jobId), ...store.jobs.states().keys()])];
  const jobs = ids.map((jobId) => {
    const attempt = leased.get(jobId)?.attempt;
    const own = attempt === undefined ? '' : `@${attempt} ${leased.stateOf(jobId)}`;
    return `${jobId}${own} ${store.jobs.get(jobId)?.state ?? 'not here'}`;
  });
  const parts = {
    has: few(jobs, ', ') || 'no jobs',
    'stores leases': few(store.fleetLeases.all().map(({ jobId, attempt }) => `${jobId}@${attempt}`)),
    asks: few(
      store.requests.open('pass').map(({ kind, jobId }) => `${kind} ${jobId}`),
      ', ',
    ),
    'is to write': few(changes.jobs()),
    'has the rule': store.watchMine.of('command')?.maxJobs,
    'lost jobs': rounds.following.lostJobs,
    'took over': rounds.taking.takeovers,
  };
  return Object.entries(parts)
    .flatMap((part) => (part[1] ? part.join(' ') : []))
    .join('; ');
}

async function linesOf(written: string): Promise<string[]> {
  const ends: (() => unknown)[] = [];
  const fleet = await FleetParts.make({ onTestFinished: (end) => void ends.push(end as () => unknown) });
  const story = new RoundsStory(fleet, (await fleet.join('command')).commands);
  const lines: string[] = [];
  for (const step of written.split('; ')) lines.push(...(await story.do(step)));
  for (const end of ends.reverse()) await end();
  return lines;
}

it('what each agent has of its jobs after each step is what is written in rounds.txt', needs('postgres'), async () => {
  const file = path.join(import.meta.dirname, 'rounds.txt');
  const cases = [...fs.readFileSync(file, 'utf8').matchAll(/^> (.*)$/gm)].map(([, written = '']) => written);
  // The server has no connections for all at a time.
  const queue = new PQueue({ concurrency: 4 });
  const results = new Map(cases.map((written) => [written, queue.add(() => linesOf(written))]));
  await expectCases(file, async (written) => (await results.get(written)) ?? []);
});
