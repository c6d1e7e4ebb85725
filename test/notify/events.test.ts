/** Which events follow from what happens to a job, and to the agent. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../src/job-information.ts';
import { EVENT_TYPES, type NotifyEvent } from '../../src/notification.ts';
import { UnderWay } from '../../src/notify/deliveries.ts';
import { newEvent } from '../../src/notify/events.ts';
import type { Notifications } from '../../src/notify/notifications.ts';
import { Rule, type RuleSettings } from '../../src/notify/rules.ts';
import type { HttpRequest } from '../../src/remote/http/http-client.ts';
import type { ReadPositionRow } from '../../src/store/outbox.ts';
import type { WatchState } from '../../src/store/rows.ts';
import { expectCases } from '../support/errors.ts';
import { JOB, KEY, type NotifyPlace, placeWith, ruleOf } from './place.ts';

/** Of a file, how far it was read. */
type ReadAt = Pick<ReadPositionRow, 'generation' | 'position' | 'lines'>;

const ALL = ruleOf({ on: [...EVENT_TYPES], match: 'ERROR' });

/** Two runs of a job start then. */
const STARTS: Readonly<Record<string, string>> = { A: '2026-11-27T23:00:00Z', B: '2026-11-27T23:30:00Z' };
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const NO_NEWS = { polledAt: 9, grownAt: 9, refused: 0, failures: 0, error: null };

/** What a report has besides its state: a name, a start, an end so many seconds from now, and failures of tasks. */
function reportOf(words: string, now: number): Partial<JobInformation> {
  const [, name, run, ends, zone = '', failing] =
    /^(?: as (\S+))?(?: (A|B))?(?: ends (\S+?)(Z?))?(?: failing (.*))?$/.exec(words) ?? [];
  const end = new Date(now + Number(ends ?? 0) * 1_000).toISOString().replace('Z', zone);
  const task = { id: '9001' as TaskId, name: null, state: 'Failed', startTime: null, endTime: null };
  const errors = failing === undefined ? [] : (JSON.parse(failing) as (string | null)[]);
  return {
    ...(name !== undefined && { name }),
    startTime: run === undefined ? null : jobTimeOf(STARTS[run] ?? ''),
    endTime: ends === undefined ? null : jobTimeOf(end),
    tasks: errors.map((errorMessage) => ({ ...task, errorMessage })),
  };
}

const started = new WeakMap<NotifyPlace, Notifications>();
const rulesOf = new WeakMap<NotifyPlace, readonly RuleSettings[]>();
const underWay = new WeakMap<NotifyPlace, UnderWay>();

/** The steps of events.txt and deliveries.txt, by their first word. */
const STEPS: Readonly<Record<string, (place: NotifyPlace, rest: string) => unknown>> = {
  start: (place) => started.set(place, place.start()),
  catch: (place) => void started.get(place)?.catchUp(),
  watch: (place, rest) => place.watch(JOB, /seen (\w+)/.exec(rest)?.[1] ?? null, !rest.includes('no results')),
  report: (place, rest) => {
    const [, state = '', more = ''] = /^(\w+)(.*)$/.exec(rest) ?? [];
    place.report(state, reportOf(more, place.clock.now()));
  },
  // `x{9}` is nine times x, and `3 times "a"` the same text three times.
  grow: (place, rest) => {
    const [, times = 1, text = '""'] = /^(?:(\d+) times )?(.*)$/.exec(rest) ?? [];
    const one = JSON.parse(text.replaceAll(/(.)\{(\d+)\}/g, (_, unit, count) => unit.repeat(Number(count)))) as string;
    place.grow(one.repeat(Number(times)));
  },
  bytes: (place, rest) => place.grow(Buffer.from(rest, 'hex')),
  /** The same of another job. */
  other: (place, rest) => place.grow(JSON.parse(rest) as string, '502' as JobId),
  append: (place, rest) => fs.appendFileSync(place.mirror(), JSON.parse(rest) as string),
  commit: (place, rest) => place.commit(Number(rest)),
  rotate: (place, rest) => place.rotate(rest as 'truncated', async () => {}),
  /** So far it was read, as an older state has it. */
  read: ({ store }, rest) => store.outbox.savePosition({ jobId: JOB, ...KEY, ...(JSON.parse(rest) as ReadAt) }),
  link: (place) => {
    fs.renameSync(place.mirror(), `${place.mirror()}.mine`);
    fs.symlinkSync(`${place.mirror()}.mine`, place.mirror());
  },
  unlink: (place) => fs.renameSync(`${place.mirror()}.mine`, place.mirror()),
  slow: (place, rest) => Object.assign(place, { slow: rest }),
  poll: (place) => place.store.jobs.endRun(JOB, NO_NEWS),
  stall: (place, rest) => place.stall(JSON.parse(rest || '5') as number | null),
  set: (place, rest) => place.setState(rest as WatchState),
  resume: (place) => place.store.jobs.resume(JOB),
  forget: (place, rest) => {
    const [first, count] = rest.split(' ');
    const jobs = Array.from({ length: Number(count ?? 1) }, (_, index) => `${Number(first || JOB) + index}` as JobId);
    place.store.transaction(() => jobs.forEach((jobId) => void place.store.jobs.forget(jobId, place.clock.now())));
  },
  clock: (place, rest) => place.clock.stepWall(Number(rest) * 1_000),
  prove: ({ store }, rest) => {
    for (const row of store.liveFiles.ofJob(JOB))
      store.liveFiles.save({ ...row, verified: row.position - Number(rest) });
  },
  pass: (place, rest) => place.clock.pass(Number(rest) * 1_000),
  alone: (place) => Object.assign(place, { hasJobService: false }),
  degraded: (place, rest) => Object.assign(place, { degraded: rest === 'no more' ? undefined : rest }),
  /** The statuses of the next requests, the last one of all further ones; then, what happens meanwhile, or a pause. */
  answers: (place, rest) => {
    const codes = rest.split(' ');
    const request = async ({ url, body, signal }: HttpRequest) => {
      const [code = '', then = ''] = ((codes.length > 1 ? codes.shift() : codes[0]) ?? '').split(':');
      const { id, data } = JSON.parse(String(body)) as { id: string; data: NotifyEvent };
      const row = place.store.outbox.all().find(({ event }) => event.id === id);
      const jobs = data.jobs === undefined ? '' : ` of ${data.jobs.length} jobs from ${data.jobs[0]} on`;
      const next = ((row?.dueAt ?? 0) - place.clock.now()) / 1_000;
      const { host } = new URL(url);
      const what = `${code} for ${data.count} ${data.type}${jobs} (${id}, attempt ${row?.attempts}, next in ${next} s)`;
      place.trace.push(`${place.seconds}: ${host}: ${what}`);
      if (host === 'slow') await new Promise((_, no) => signal?.addEventListener('abort', () => no(signal.reason)));
      if (then === 'acquired' && row !== undefined) place.store.outbox.remove(row);
      if (then === 'removed') for (const step of ['set', 'forget']) STEPS[step]?.(place, 'ended');
      const answer = { status: Number(code), contentType: '', charset: '', body: (async function* () {})() };
      return { ...answer, retryAfterMs: /^\d+$/.test(then) ? Number(then) * 1_000 : undefined };
    };
    place.http = { request, close: async () => {} };
  },
  // Jobs that were queued, and have another state now.
  jobs: (place, rest) => {
    const [first, count, state = ''] = rest.split(' ');
    for (let number = 0; number < Number(count); number++) {
      const jobId = `${Number(first) + number}` as JobId;
      place.watch(jobId, 'Queued');
      place.report(state, {}, jobId);
    }
  },
  // Lines that match, in each of so many seconds.
  lines: async (place, rest) => {
    for (let second = 0; second < Number(rest); second++) {
      place.grow('ERROR\n'.repeat(20));
      await place.tick();
    }
  },
  /** As an earlier version left them: so many more of each delivery. */
  copies: ({ store: { outbox } }, rest) => {
    for (const row of outbox.all())
      for (let number = 0; number < Number(rest); number++) outbox.save({ ...row, deliveryId: `${number}` });
  },
  attempts: ({ store: { outbox } }, rest) => {
    for (const row of outbox.all()) outbox.save({ ...row, attempts: Number(rest) });
  },
  full: ({ store }, rest) => {
    if (rest === 'no more') return vi.restoreAllMocks();
    const error = new JobtailError('store', 'the state cannot be written', { hint: 'free some space' });
    return vi.spyOn(store.outbox, 'save').mockImplementation(() => {
      throw error;
    });
  },
  /** The jobs whose events are not read or not delivered, and how many jobs have a place in the state. */
  unsent: (place) => {
    const jobs = [...(started.get(place)?.unsent() ?? [])];
    place.trace.push(
      `${place.seconds}: unsent: ${jobs.join(' ') || 'none'} of ${place.store.outbox.jobs.all().length}`,
    );
  },
  stop: async (place) => {
    await place.clock.passWhile(started.get(place)?.stop() ?? Promise.resolve());
    expect(place.clock.timers).toBe(0);
  },
  // Another configuration takes over, with these of the rules.
  configure: async (place, rest) => {
    const replaced = started.get(place)?.replace();
    if (replaced !== undefined) await place.clock.passWhile(replaced);
    place.rules = rulesOf.get(place)?.filter((_, at) => rest.includes(`${at + 1}`)) ?? [];
    started.set(place, place.start(undefined, underWay.get(place), true));
    // The deliveries of other rules are dropped.
    if (rest === '0') expect(place.waiting).toEqual([]);
  },
};

it.each(['events', 'deliveries'])('each life of a job has the %s that are written', async (name) => {
  await expectCases(path.join(import.meta.dirname, `${name}.txt`), async (written) => {
    const steps = written.split('; ');
    const rules = steps.filter((step) => /^(?:all$|\{)/.test(step));
    const settings = rules.map((rule) => (rule === 'all' ? ALL : ruleOf(JSON.parse(rule) as object)));
    const place = placeWith(...settings);
    rulesOf.set(place, settings);
    underWay.set(place, new UnderWay());
    const ids = settings.map((each) => new Rule(each).id);
    const result: string[] = [];
    const seen = new Set<string>();
    for (const [index, step] of steps.slice(rules.length).entries()) {
      const [, word = '', rest = ''] = /^(\w+) ?(.*)$/.exec(step) ?? [];
      await STEPS[word]?.(place, rest);
      expect(Object.keys(STEPS), written).toContain(word);
      if (/pass|stop/.test(word) || index === steps.length - rules.length - 1) {
        const come = place.store.outbox.all().flatMap(({ rule, event }, at) => {
          const { id, time, jobId, jobName = jobId ?? 'no job', file, generation = 1 } = event;
          if (seen.has(id)) return [];
          seen.add(id);
          expect(Date.parse(time)).toBeLessThanOrEqual(place.clock.now());
          const text = place.shown[at]?.replaceAll('\u001b', 'ESC');
          const shown = text?.replaceAll(/(.)\1{20,}/g, (run, unit) => `${unit}{${run.length}}`);
          const where =
            file === undefined ? '' : `, ${event.taskId} ${file}${generation > 1 ? `, g${generation}` : ''}`;
          return [`rule ${ids.indexOf(rule) + 1}: ${shown} (${jobName}${where})`];
        });
        if (name === 'events' && come.length > 0) result.push(`${index + 1}. ${step}: ${come.join(', ')}`);
      }
      // That nothing listens where the events go is of no interest.
      const logged = place.trace
        .splice(0)
        .filter((line) => name === 'deliveries' || !line.includes('warn notification failed'));
      result.push(...logged.map((line) => line.replace(place.mirrors, 'DIR')));
    }
    if (name === 'deliveries')
      for (const { event, dueAt, attempts, lastError } of place.store.outbox.all()) {
        const due = dueAt === null ? 'given up' : `due in ${(dueAt - place.clock.now()) / 1_000} s`;
        result.push(`in the end: ${event.type} (${event.id}), ${due}, ${attempts} attempts: ${lastError}`);
      }
    vi.restoreAllMocks();
    const known = [...new Set(result.join('\n').match(UUID))];
    const shown = (line: string) => line.replaceAll(UUID, (id) => `#${known.indexOf(id) + 1}`);
    return result.length === 0 ? ['no event'] : result.map(shown);
  });
});

it.each([
  ['did not change', (place: NotifyPlace) => place.setState('settled')],
  ['has an older report, as of a list that lags,', (place: NotifyPlace) => place.report('Queued')],
  ['has written a part of a line', (place: NotifyPlace) => place.grow('ERROR')],
])('a job that %s is not read again and again', async (_, change) => {
  const place = placeWith(ruleOf({ on: ['results-complete', 'match'], match: 'ERROR' }));
  place.start();
  place.watch();
  place.report('Running', { startTime: jobTimeOf(STARTS['A'] ?? '') });
  await place.tick();
  change(place);
  await place.tick();
  await place.tick();
  const [reads, opens] = [vi.spyOn(place.store.outbox, 'changedJobs'), vi.spyOn(fs.promises, 'open')];
  onTestFinished(() => void vi.restoreAllMocks());
  await place.clock.pass(10_000);
  expect(reads).not.toHaveBeenCalled();
  place.store.jobs.endRun(JOB, NO_NEWS);
  await place.tick();
  expect([reads.mock.calls.length, opens.mock.calls]).toEqual([1, []]);
});

it('a pattern that takes seconds for each piece of a long file delays neither the events of jobs nor other files', async () => {
  const place = placeWith(ruleOf({ on: ['failed', 'match'], match: 'ERROR' }));
  const notifications = place.start();
  place.watch();
  place.watch('502' as JobId);
  place.report('Running', {}, '502' as JobId);
  place.grow('a line\n'.repeat(500_000));
  const { matches } = place;
  place.matches = async (pattern, lines) => {
    if (lines[0] === 'a line') await new Promise<void>((resolve) => void place.clock.timer(5_000, resolve));
    return await matches(pattern, lines);
  };
  await place.tick();
  place.report('Failed', {}, '502' as JobId);
  place.grow('ERROR\n', '502' as JobId);
  const bytesRead = () => place.store.outbox.position(JOB, KEY)?.position ?? 0;
  for (const event of ['failed', 'match 1 ERROR']) {
    await place.clock.passUntil(event, () => place.shown.includes(event));
    expect(bytesRead()).toBeLessThan(1_500_000);
  }
  place.grow('ERROR\n');
  // Before a job is removed, its files are read to their ends.
  await place.clock.passWhile(notifications.catchUp());
  expect(place.shown).toContain('match 500001 ERROR');
});

it('a rule that leaves a job out by its id takes none of its events because it has no name', () => {
  const rule = new Rule(ruleOf({ on: ['started'], jobs: ['*', '!501'] }));
  const names = [{}, { jobName: '' }, { jobName: 'heat-7' }];
  const isTaken = names.map((name) => rule.takes(newEvent('started', 0, { jobId: JOB, ...name })));
  expect(isTaken).toEqual([false, false, true]);
});

it('a rule has the id that it had before it could name a proxy and authorities', () => {
  const { proxy, caFile, ...settings } = ruleOf({ match: 'ERROR' });
  const before = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 16);
  expect(new Rule({ ...settings, proxy, caFile }).id).toBe(before);
  for (const more of [{ proxy: 'http://proxy.example' }, { caFile: '/ca.pem' }])
    expect(new Rule({ ...settings, proxy, caFile, ...more }).id).not.toBe(before);
});
