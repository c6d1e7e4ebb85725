/** A job that is followed step by step, by a clock that the test holds: what the service and the commands do, and what changes. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { Calls } from '../../../src/agent/calls.ts';
import { mirrorPath } from '../../../src/agent/live/mirror/mirror.ts';
import { Results } from '../../../src/agent/results/results.ts';
import { type ErrorCode, EXIT, JobtailError } from '../../../src/errors.ts';
import { BEHIND_EVERY_END, type JobId, keyText, type TaskId } from '../../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../../src/job-information.ts';
import { unprovenIn } from '../../../src/proven.ts';
import type { WatchRequest, WatchState } from '../../../src/store/rows.ts';
import { sleep } from '../../../src/system/clock.ts';
import { DiskReserve } from '../../../src/system/files.ts';
import { type ComposedAgent, startAgent } from '../../support/composed-agent.ts';
import { JOB, STDOUT, TASK } from '../../support/engine.ts';
import { HeldClock, writtenMs } from '../../support/held-clock.ts';
import { NEW_RESULT } from '../../support/live-place.ts';
import { at, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

interface OneJob extends Partial<WatchRequest>, Pick<ComposedAgent, 'sections' | 'random' | 'follows'> {
  /** As the job service reports it; undefined: there is no job service. */
  readonly state?: string | null;
  readonly taskIds?: readonly string[];
  readonly as?: WatchState;
  /** Of its standard output; null: it has none. */
  readonly text?: string | null;
}

/** An agent that follows one job by a clock that the test holds: nothing has begun yet. */
async function startJob({ state, sections = '', random, follows, taskIds = [TASK], as, ...order }: OneJob) {
  const { text = 'a line\n', ...request } = order;
  const clock = new HeldClock();
  const remote = new ModelRemote();
  const service = new ModelJobService();
  if (state !== undefined) service.set(jobOf(JOB, state, { tasks: tasksOf(...taskIds) }));
  if (text !== null) remote.files.set(keyText(STDOUT), Buffer.from(text));
  // After the stop.
  onTestFinished(() => expect(remote.held).toBe(0));
  const started = await startAgent(remote, {
    ...{ clock, sections },
    ...(follows && { follows }),
    ...(random && { random }),
    ...(state !== undefined && { jobService: service }),
  });
  started.watch(request, as);
  return { ...started, clock, remote, service };
}

type Started = Awaited<ReturnType<typeof startJob>>;
type CallKind = 'texts' | 'probes' | 'listings' | 'downloads' | 'lists' | 'reports';

const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
/** What a step that passes time looks at: no more moments than this, and a second apart. */
const MAX_LOOKS = 20;
const MAX_SHOWN = 30;

/** `200 b` of a text that is longer than a line. */
const short = (text: string) => (text.length > MAX_SHOWN ? `${text.length} bytes` : JSON.stringify(text));

/** A line of the log about several jobs, whichever came first. */
const ofSeveral = (line: string) =>
  `${line.replace(/ \(and alike\)$/, '').replace(/jobId=\d+/, 'jobId=N')} (and alike)`;

/** A call that fails, is slow, or in which a step happens: `texts`, or those of one subject, as `texts:stdout`. */
interface Rule {
  readonly call: string;
  readonly error?: JobtailError;
  readonly slowMs?: number;
  /** Whether a stop does not end it. */
  readonly isDeaf?: boolean;
  readonly step?: string;
}

class JobStory {
  readonly #started: Started;
  readonly #counts = new Map<string, number>();
  readonly #rules = new Map<string, Rule>();
  readonly #startedAt: number;
  #before: Readonly<Record<string, string>> = {};
  /** Of the store and the clocks, when they were read. */
  #version = '';
  #refused = 0;
  readonly #requests: number[] = [];

  constructor(started: Started) {
    this.#started = started;
    this.#startedAt = started.clock.monotonic();
    const { remote, service } = started;
    const [read, list, download] = [remote.readParts, remote.listChangedFiles, remote.downloadFile];
    remote.readParts = async (...call) => {
      const names = call[1].filter(({ offset }) => offset !== BEHIND_EVERY_END).map(keyText);
      await this.#call(names.length === 0 ? 'probes' : 'texts', names.join(' '), call[2]);
      const parts = await read.apply(remote, call);
      return { ...parts, refused: this.#refused };
    };
    remote.listChangedFiles = async (...call) => {
      await this.#call('listings', '', call[1]);
      return await list.apply(remote, call);
    };
    remote.downloadFile = async (...call) => {
      await this.#call('downloads', call[1], call[3]);
      return await download.apply(remote, call);
    };
    const [listJobs, getJob] = [service.listJobs, service.getJob];
    const calls = {
      listJobs: async (signal: AbortSignal) => {
        await this.#call('lists', '', signal);
        return await listJobs.apply(service);
      },
      getJob: async (jobId: JobId, signal: AbortSignal) => {
        await this.#call('reports', jobId, signal);
        return await getJob.call(service, jobId);
      },
    };
    Object.assign(service, calls);
    const { slot } = Calls.prototype;
    const count = (lane: string) => this.#count(`in ${lane}`);
    vi.spyOn(Calls.prototype, 'slot').mockImplementation(function (this: Calls, ...call) {
      count(call[0]);
      return slot.apply(this, call);
    });
    this.#changed();
  }

  async #call(kind: CallKind, subject: string, signal: AbortSignal): Promise<void> {
    this.#count(kind);
    const isMeant = ({ call }: Rule) => {
      const [of, part = ''] = call.split(':');
      return (of === 'all' || of === kind) && subject.includes(part);
    };
    const rules = [...this.#rules].filter(([, rule]) => isMeant(rule));
    for (const [name, { step }] of rules) if (step !== undefined && this.#rules.delete(name)) this.#do(step);
    for (const [, { slowMs, isDeaf }] of rules)
      if (slowMs !== undefined)
        await sleep(this.#started.clock, slowMs, isDeaf ? undefined : signal).catch((thrown: unknown) => {
          this.#count(`${kind} stopped`);
          throw thrown;
        });
    for (const [, { error }] of rules) if (error !== undefined) throw error;
  }

  #count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  /** What of the job is in the store and on the disk, and what the commands were answered. */
  get #state(): Readonly<Record<string, string>> {
    const { store, mirrorDirectory } = this.#started;
    const found: Record<string, string> = {};
    for (const { jobId, state, error, stalledAt, refused, failures, seenState } of store.jobs.all()) {
      const more = [
        error && `${error.code}: ${error.message}${error.retryAt === undefined ? '' : ', retried'}`,
        stalledAt && `stalled since ${this.#timeOf(stalledAt)}`,
        refused > 0 && `${refused} refused`,
        failures > 0 && 'failing',
        seenState && `seen as ${seenState}`,
      ];
      found[`job ${jobId}`] = [state, ...more.filter(Boolean)].join(', ');
      const { information, since = 0 } = store.jobInformation.get(jobId) ?? {};
      found[`reported ${jobId}`] =
        information?.state == null ? '' : `${information.state} since ${this.#timeOf(since)}`;
      const counts = Object.entries(store.results.counts(jobId)).filter(([, count]) => count > 0);
      found[`results ${jobId}`] = counts.map((count) => count.join(' ')).join(', ');
    }
    const { foundBy } = store.taskSearches.get(JOB) ?? {};
    const tasks = store.taskSearches.knownTasks(JOB);
    found['tasks'] = tasks.length === 0 ? '' : `${tasks.join(' ')} by ${foundBy}`;
    for (const { name, state, reason } of store.results.notSynced(JOB, 5)) found[name] = `${state}: ${reason}`;
    for (const row of store.liveFiles.ofJob(JOB)) {
      const { position, generation, error } = row;
      const file = mirrorPath(mirrorDirectory, JOB, row);
      if (position === 0 && generation === 1 && error === null) continue;
      const generations = generation === 1 ? '' : ` of generation ${generation}`;
      const more = `${generations}${error === null ? '' : `, ${error.code}: ${error.message}`}`;
      found[keyText(row)] = `${short(fs.readFileSync(file, 'latin1'))}${more}`;
    }
    found['here'] = this.#here;
    const { stalledJobs } = store.totals.read();
    found['stalled'] = stalledJobs === 0 ? '' : `${stalledJobs}`;
    for (const id of this.#requests) found[`answer ${id}`] = store.requests.get(id)?.answer ?? '';
    const listing = store.jobInformation.lastListing();
    found['list of jobs'] = listing?.error == null ? '' : `${listing.error.code}: ${listing.error.message}`;
    const job = store.jobs.get(JOB);
    const isOver = job !== undefined && job.state !== 'watched' && job.state !== 'ending';
    found['unproven'] = isOver ? unprovenIn(store, JOB).join('; ') : '';
    return found;
  }

  /** Files of the results. */
  get #here(): string {
    const directory = path.join(this.#started.mirrorDirectory, JOB, 'results');
    const all = fs.existsSync(directory) ? fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }) : [];
    return all
      .filter((name) => path.extname(name) !== '')
      .sort()
      .join(', ');
  }

  #timeOf(wallMs: number): string {
    const { clock } = this.#started;
    return timeOf(wallMs - clock.now() + clock.monotonic() - this.#startedAt);
  }

  #changed(): string[] {
    const { store, clock, warnings } = this.#started;
    const version = `${store.version()} ${Math.round(clock.now() - clock.monotonic())}`;
    const [before, now] = [this.#before, version === this.#version ? this.#before : this.#state];
    this.#before = now;
    this.#version = version;
    const names = new Set([...Object.keys(before), ...Object.keys(now)]);
    const changed = [...names].filter((name) => (now[name] ?? '') !== (before[name] ?? ''));
    // What several jobs have alike is one line.
    const groups = new Map<string, string[]>();
    for (const name of changed) {
      const text = `${name.split(' ')[0]}: ${now[name] || 'nothing'}`;
      groups.set(text, [...(groups.get(text) ?? []), name]);
    }
    const lines = [...groups].map(([text, [first = '', ...more]]) => {
      const others = more.length === 0 ? '' : ` to ${more.at(-1)?.split(' ')[1]} (${more.length + 1})`;
      return `${first}${others}${text.slice(text.indexOf(':'))}`;
    });
    const said = [
      ...warnings.splice(0).map((line) => `warned: ${line}`),
      ...this.#started.said.splice(0).map((line) => `said: ${line}`),
    ];
    return [...lines, ...said].map((line) => line.replaceAll(path.dirname(this.#started.mirrorDirectory), 'DIR'));
  }

  /** Time that passes, the calls in it, and when what changed was seen. */
  async #pass(step: string, ms: number): Promise<string[]> {
    const { clock } = this.#started;
    // A step may have changed files.
    this.#version = '';
    const end = clock.monotonic() + ms;
    const lines: string[] = [];
    const seen = new Map<string, number>();
    const look = () => {
      for (const line of this.#changed()) {
        // A line of the log about several jobs, or that comes again, is shown once.
        const alike = line.replaceAll(/\d+/g, '');
        const known = /^(?:said|warned)/.test(line) ? seen.get(alike) : undefined;
        if (known === undefined) {
          seen.set(alike, lines.length);
          lines.push(`  ${timeOf(clock.monotonic() - this.#startedAt)} ${line}`);
        } else lines[known] = ofSeveral(lines[known] ?? '');
      }
    };
    look();
    for (const each = Math.max(Math.min(ms, 1_000), ms / MAX_LOOKS); clock.monotonic() < end; look())
      await clock.pass(Math.min(each, end - clock.monotonic()));
    const { observed, details } = this.#started;
    for (const event of observed.splice(0)) if (event !== 'jobStatesRead ok') this.#count(event);
    for (const phrase of details.splice(0)) this.#count(phrase);
    const counts = [...this.#counts].sort().map(([what, count]) => `${count} ${what}`);
    this.#counts.clear();
    return [[`${step}: ${counts.join(', ') || 'no call'}`, ...this.#times].join('; '), ...lines];
  }

  /** What the state has of the last and the next calls of the job, and of all jobs. */
  get #times(): string[] {
    const { store } = this.#started;
    const job = store.jobs.get(JOB);
    const list = store.jobInformation.lastListing();
    const times = {
      polled: job?.polledAt,
      grown: job?.grownAt,
      reported: store.jobInformation.get(JOB)?.reportedAt,
      retried: job?.error?.retryAt,
      listed: list?.requestedAt,
      next: list?.nextRequestAt,
    };
    const known = Object.entries(times).flatMap(([what, at]) => (at == null ? [] : [`${what} ${this.#timeOf(at)}`]));
    const numbers = {
      failures: job?.failures || undefined,
      'failed lists': list?.failures || undefined,
      // One is usual.
      'jobs listed': list?.listed === 1 ? undefined : list?.listed,
      'jobs wait': list?.waiting || undefined,
    };
    const counts = Object.entries(numbers).flatMap(([what, count]) =>
      count === undefined ? [] : [`${count} ${what}`],
    );
    return [[...known, ...counts].join(', ')].filter(Boolean);
  }

  #report(id: string, state: string, more: string): void {
    const { service } = this.#started;
    const { tasks, ...times } = JSON.parse(more || '{}') as Record<string, string> & { tasks?: readonly string[] };
    const parsed = Object.entries(times).map(([name, time]) => [name, jobTimeOf(time)]);
    const before = service.jobs.get(id)?.tasks ?? [];
    const information: Partial<JobInformation> = { tasks: tasks === undefined ? before : tasksOf(...tasks) };
    service.set(jobOf(id, state, { ...information, ...Object.fromEntries(parsed) }));
  }

  /** What calls of a method of the store do: a step first, or they fail so often. */
  #inStore(method: string, instead: (real: () => unknown) => unknown): void {
    const [part = '', name = ''] = method.split('.');
    const { store } = this.#started;
    const owner = (store as unknown as Record<string, Record<string, (...of: unknown[]) => unknown>>)[part] ?? {};
    const real = owner[name]?.bind(owner);
    if (real === undefined) throw new Error(`no method: ${method}`);
    owner[name] = (...of) => {
      this.#count(method);
      return instead(() => real(...of));
    };
  }

  #do(step: string): void {
    const { clock, remote, service, store, agent, watch } = this.#started;
    const [word = '', first = '', ...others] = step.split(' ');
    const text = others.join(' ');
    const rest = step.slice(word.length + 1);
    const [second = '', ...last] = others;
    const steps: Readonly<Record<string, () => unknown>> = {
      report: () => this.#report(JOB, first, text),
      other: () => this.#report(first, second, last.join(' ')),
      watch: () => watch(JSON.parse(rest || '{}') as Partial<WatchRequest>),
      unwatch: () => {
        store.transaction(() => store.jobs.unwatch((second || JOB) as JobId, first as 'ending'));
      },
      state: () => store.jobs.setState(JOB, first as WatchState),
      refresh: () => agent.refresh(),
      clock: () => clock.stepWall(writtenMs(first)),
      mended: () =>
        agent.tryAgain(({ exitCode, isOfService }) => (first === 'secret' ? exitCode === EXIT.signIn : isOfService)),
      file: () => remote.files.set(first, Buffer.from(JSON.parse(text) as string, 'latin1')),
      grows: () => {
        const before = remote.files.get(keyText(STDOUT)) ?? Buffer.alloc(0);
        remote.files.set(keyText(STDOUT), Buffer.concat([before, Buffer.from(JSON.parse(rest) as string, 'latin1')]));
      },
      gone: () => (first === 'all' ? remote.files.clear() : remote.files.delete(first)),
      raw: () => Object.assign(remote, { rawAccess: first === 'yes' }),
      date: () => Object.assign(remote, { date: first }),
      refused: () => (this.#refused = Number(first)),
      fail: () => {
        const [, pause, message = 'it fails'] = /^(?:in (\S+) ?)?(.*)$/.exec(last.join(' ')) ?? [];
        const more = pause === undefined ? {} : { retryAfterMs: writtenMs(pause) };
        this.#rules.set(`fail ${first}`, {
          call: first,
          error: new JobtailError(second as ErrorCode, message || 'it fails', more),
        });
      },
      slow: () => this.#rules.set(`slow ${first}`, { call: first, slowMs: writtenMs(second) }),
      once: () => this.#rules.set(`once ${first}`, { call: first, step: text }),
      deaf: () => this.#rules.set(`slow ${first}`, { call: first, slowMs: writtenMs(second), isDeaf: true }),
      works: () => {
        for (const kind of ['fail', 'slow', 'once']) this.#rules.delete(`${kind} ${first}`);
      },
      broken: () => {
        let times = Number(last[0] ?? Number.POSITIVE_INFINITY);
        this.#inStore(first, (real) => {
          if (times-- <= 0 || this.#rules.get(`whole ${first}`) !== undefined) return real();
          throw new JobtailError(second as ErrorCode, 'the state fails');
        });
      },
      whole: () => this.#rules.set(`whole ${first}`, { call: 'none' }),
      count: () => this.#inStore(first, (real) => real()),
      before: () => {
        let isDone = false;
        this.#inStore(first, (real) => {
          if (!isDone) {
            isDone = true;
            this.#do(text);
          }
          return real();
        });
      },
      ask: () => {
        const jobId = second === 'all' ? null : ((second || JOB) as JobId);
        this.#requests.push(store.requests.add(jobId, first as 'report', clock.now()));
        agent.refresh();
      },
      // The command goes away.
      drop: () => {
        store.requests.remove(Number(first));
        agent.refresh();
      },
      old: () => store.requests.add(JOB, first as 'sync', clock.now() - 120_000),
      signin: () => agent.serviceFailed(new JobtailError(first as ErrorCode, 'no session')),
      take: () => agent.take([JOB]),
      theirs: () => this.#started.theirs.add(first as JobId),
      ours: () => this.#started.theirs.delete(first as JobId),
      rule: () => {
        const rule = { include: ['**'], exclude: [], maxAgeMs: DAY_MS, maxJobs: 200, source: 'command' } as const;
        if (first === 'none') store.watchMine.remove('command');
        else store.watchMine.save({ ...rule, since: clock.now(), ...(JSON.parse(rest || '{}') as object) });
        agent.refresh();
      },
      // Each third job runs or waits; the others ended, half of them long ago.
      thirty: () => {
        for (let id = 1; id <= 30; id++) {
          const [isOver, isEven] = [id % 3 !== 0, id % 2 === 0];
          const endTime = isOver ? at(clock.now() - (isEven ? 30 * DAY_MS : MINUTE_MS)) : null;
          const state = isOver ? 'Finished' : isEven ? 'Running' : 'Queued';
          service.set(
            jobOf(`${id}`, state, { tasks: tasksOf(`${10_000 + id}`), endTime, submitTime: at(clock.now()) }),
          );
        }
      },
      finish: () => {
        for (const job of service.jobs.values()) service.set({ ...job, state: 'Finished', endTime: at(clock.now()) });
      },
      jobs: () => {
        for (let id = Number(first); id < Number(first) + Number(second); id++) {
          service.unlisted.add(`${id}`);
          if (last[0] !== undefined) service.set(jobOf(`${id}`, last[0]));
          watch({ jobId: `${id}` as JobId, tasks: ['101' as TaskId], files: ['stdout'], results: false });
        }
      },
      row: () => store.results.saveAll([{ ...NEW_RESULT, name: first, ...(JSON.parse(text) as object) }]),
      unlisted: () => service.unlisted.add(first),
      listed: () => service.unlisted.delete(first),
      nowhere: () => service.jobs.delete(first),
      room: () => {
        if (first === 'no') vi.spyOn(DiskReserve.prototype, 'hasRoomFor').mockResolvedValue(false);
        else vi.restoreAllMocks();
      },
      keys: () => {
        const hang = async (...call: Parameters<Results['endTransfer']>) =>
          await sleep(clock, writtenMs(first), call[1].signal);
        vi.spyOn(Results.prototype, 'endTransfer').mockImplementation(hang);
      },
      remove: () => fs.rmSync(path.join(this.#started.mirrorDirectory, JOB, first)),
    };
    if (steps[word] === undefined) throw new Error(`no step: ${step}`);
    steps[word]();
  }

  async play(step: string): Promise<string[]> {
    const [word, first = ''] = step.split(' ');
    if (word === 'pass') return await this.#pass(step, writtenMs(first));
    if (word === 'begin') {
      await this.#pass(step, writtenMs(first));
      return [];
    }
    if (word === 'release') await this.#started.agent.release(JOB);
    else if (word === 'restart') await this.#started.restart();
    else this.#do(step);
    return [];
  }
}

function timeOf(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** What the steps of a case lead to; the first one may be how the job is followed. */
export async function followed(written: string): Promise<string[]> {
  const steps = written.split('; ');
  const how = steps[0]?.startsWith('{') ? (JSON.parse(steps.shift() ?? '') as OneJob) : {};
  onTestFinished(() => void vi.restoreAllMocks());
  const story = new JobStory(await startJob({ random: () => 0.5, files: ['stdout'], ...how }));
  const result: string[] = [];
  for (const step of steps) result.push(...(await story.play(step)));
  vi.restoreAllMocks();
  return result;
}
